-- Where the course's 5000 pieces were put: an instance does so once for a database, and nobody ever again, so that no
-- instance invents stock for a server that has lost it.
CREATE TABLE seeded (
  store VARCHAR(16) NOT NULL PRIMARY KEY
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;
