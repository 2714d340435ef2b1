-- The rows of the tables that 0000 has put aside, where it has: the stock as it is, and the locks that are held.
SET @back = (SELECT IF(COUNT(*) = 1,
    'REPLACE INTO db_stock (id, product_code, stock_code, count) SELECT id, product_code, stock_code, count FROM oversell_course_db_stock',
    'DO 0')
  FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'oversell_course_db_stock');
PREPARE back FROM @back;
EXECUTE back;

SET @back = (SELECT IF(COUNT(*) = 1,
    'REPLACE INTO tb_lock (id, lock_name, class_name, method_name, server_name, thread_name, create_time, `desc`) SELECT id, lock_name, class_name, method_name, server_name, thread_name, COALESCE(create_time, NOW()), `desc` FROM oversell_course_tb_lock',
    'DO 0')
  FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'oversell_course_tb_lock');
PREPARE back FROM @back;
EXECUTE back;
DEALLOCATE PREPARE back;

DROP TABLE IF EXISTS oversell_course_db_stock, oversell_course_tb_lock;
