-- Names of locks compare exactly: `Stock` and `stock`, `a` and `a `, `é` and `e` are two locks each.
ALTER TABLE tb_lock MODIFY lock_name VARCHAR(50) CHARACTER SET utf8mb4 /*M!100200 COLLATE utf8mb4_nopad_bin */ /*!80017 COLLATE utf8mb4_0900_bin */ NOT NULL;
