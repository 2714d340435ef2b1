-- What the last run of `oversell course` has said of each lesson, for the page of every instance.
CREATE TABLE course_verdict (
  lesson     VARCHAR(64) NOT NULL PRIMARY KEY,
  at         DATETIME(6) NOT NULL COMMENT 'UTC',
  conditions TEXT        NOT NULL COMMENT 'JSON: where and how it was run',
  verdict    MEDIUMTEXT  NOT NULL COMMENT 'JSON: the lesson as the command writes it'
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;
