-- Whether the voucher's stock was put into Redis, for the step that sells from there: an instance does so once for a voucher,
-- and nobody ever again, so that no instance invents stock for a Redis that has lost it.
ALTER TABLE tb_seckill_voucher ADD COLUMN in_redis BOOLEAN NOT NULL DEFAULT FALSE;
