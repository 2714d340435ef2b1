CREATE TABLE IF NOT EXISTS tb_lock (
  id          BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
  lock_name   VARCHAR(50)  CHARACTER SET utf8mb4 /*M!100200 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */ NOT NULL,
  class_name  VARCHAR(100) NULL,
  method_name VARCHAR(50)  NULL,
  server_name VARCHAR(50)  NULL,
  thread_name VARCHAR(50)  NULL,
  create_time TIMESTAMP    NOT NULL DEFAULT CURRENT_TIMESTAMP,
  `desc`      VARCHAR(100) NULL,
  owner       VARCHAR(96)  NULL COMMENT '[label-]process uuid:number',
  holds       INT          NOT NULL DEFAULT 1,
  expires_at  TIMESTAMP(3) NULL,
  UNIQUE KEY idx_unique (lock_name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;
