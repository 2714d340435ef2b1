-- [002]: a voucher of a seckill and its orders. `stock` has a sign and the orders have no unique key on voucher and user: the
-- unsafe steps must be able to break. `claimed_by` is for the steps whose rule the database keeps; NULL equals no NULL.
CREATE TABLE tb_seckill_voucher (
  voucher_id BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
  title      VARCHAR(255) NOT NULL,
  pieces     INT          NOT NULL COMMENT 'what the stock was at first',
  stock      INT          NOT NULL COMMENT 'pieces left; below 0 once it is oversold',
  begin_time DATETIME(6)  NOT NULL COMMENT 'UTC',
  end_time   DATETIME(6)  NOT NULL COMMENT 'UTC'
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE tb_voucher_order (
  id          BIGINT      NOT NULL PRIMARY KEY COMMENT 'from the id worker',
  user_id     BIGINT      NOT NULL,
  voucher_id  BIGINT      NOT NULL,
  claimed_by  BIGINT      NULL COMMENT 'the user, where the database must refuse a second order',
  create_time DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  KEY idx_voucher_user (voucher_id, user_id),
  UNIQUE KEY uk_voucher_claimed_by (voucher_id, claimed_by)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;
