-- §1.2: one product in one warehouse, and the column of §1.7.3. `fence` holds the highest token that wrote the row.
CREATE TABLE db_stock (
  id           BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
  product_code VARCHAR(255) NULL COMMENT 'product',
  stock_code   VARCHAR(255) NULL COMMENT 'warehouse',
  count        INT          NULL COMMENT 'pieces left',
  version      BIGINT       NOT NULL DEFAULT 0 COMMENT 'grows with each write, for compare-and-set',
  fence        BIGINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'highest fencing token that wrote the row'
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

INSERT INTO db_stock (id, product_code, stock_code, count) VALUES (1, '1001', '001', 5000);
