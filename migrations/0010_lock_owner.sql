-- An owner is `label-uuid:number`: 32, 36 and 20 characters.
ALTER TABLE tb_lock MODIFY owner VARCHAR(96) NULL COMMENT '[label-]process uuid:number';
