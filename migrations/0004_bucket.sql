-- Pieces that `single-update-buckets` has moved out of the row: the stock of a product is its row and its buckets together.
CREATE TABLE db_stock_bucket (
  stock_id BIGINT NOT NULL,
  bucket   INT    NOT NULL,
  count    INT    NOT NULL COMMENT 'pieces left in it',
  PRIMARY KEY (stock_id, bucket)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;
