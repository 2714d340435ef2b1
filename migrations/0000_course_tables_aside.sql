-- A database may have the tables of the course's own program (§1.2, §4): without `fence`, without `owner`. They step aside
-- for those that 0001 and 0002 make, and 0003 takes their rows over. Any other database stays as it is.
SET @aside = (SELECT IF(COUNT(*) = 1, 'RENAME TABLE db_stock TO oversell_course_db_stock', 'DO 0') FROM information_schema.TABLES
  WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'db_stock' AND NOT EXISTS (SELECT 1 FROM information_schema.COLUMNS
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'db_stock' AND COLUMN_NAME = 'fence'));
PREPARE aside FROM @aside;
EXECUTE aside;

SET @aside = (SELECT IF(COUNT(*) = 1, 'RENAME TABLE tb_lock TO oversell_course_tb_lock', 'DO 0') FROM information_schema.TABLES
  WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'tb_lock' AND NOT EXISTS (SELECT 1 FROM information_schema.COLUMNS
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'tb_lock' AND COLUMN_NAME = 'owner'));
PREPARE aside FROM @aside;
EXECUTE aside;
DEALLOCATE PREPARE aside;
