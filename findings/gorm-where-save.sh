#!/usr/bin/env bash
# GORM 1.31.2 on SQLite: `Where("version = ?", read).Save(&s)` of a stale struct changes no row, and then inserts it, ON
# CONFLICT DO UPDATE: the other's sale is overwritten, without an error and with RowsAffected 1. `Updates` with the struct that
# has sold the last piece leaves out the count of 0: the piece stays. It needs Go 1.24 or newer, and no server. Exits with 1 if
# that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >main.go <<'GO'
package main

import (
	"fmt"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
)

type Stock struct {
	ID, Count, Version int
}

func main() {
	db, err := gorm.Open(sqlite.Open(":memory:"), &gorm.Config{})
	if err != nil || db.AutoMigrate(&Stock{}) != nil {
		panic(err)
	}
	db.Create(&Stock{ID: 1, Count: 100, Version: 1})
	var mine, left Stock
	db.First(&mine, 1)
	db.Exec("UPDATE stocks SET count = count - 5, version = version + 1 WHERE id = 1")
	mine.Count, mine.Version = mine.Count-1, mine.Version+1
	saved := db.Where("version = ?", 1).Save(&mine)
	db.First(&left, 1)
	fmt.Printf("Where(version).Save of a stale struct: error %v, %d row; 6 sold, %d gone\n", saved.Error, saved.RowsAffected, 100-left.Count)

	db.Exec("UPDATE stocks SET count = 1, version = 1 WHERE id = 1")
	saved = db.Model(&Stock{}).Where("id = 1 AND version = 1").Updates(&Stock{Count: 0, Version: 2})
	left = Stock{}
	db.First(&left, 1)
	fmt.Printf("Updates of the last piece: error %v, %d row; %d left\n", saved.Error, saved.RowsAffected, left.Count)
}
GO
{
    go mod init finding
    go get gorm.io/gorm@v1.31.2 github.com/glebarez/sqlite@v1.11.0
    go mod tidy
    go build -p 1 -o finding .
} >build.log 2>&1 || { tail build.log; exit 2; }
./finding | tee seen
diff seen - <<'SEEN'
Where(version).Save of a stale struct: error <nil>, 1 row; 6 sold, 1 gone
Updates of the last piece: error <nil>, 1 row; 1 left
SEEN
