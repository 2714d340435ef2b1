#!/usr/bin/env bash
# go-mysql-server 0.20.0 with its in-memory tables: of 400 autocommitted `UPDATE … SET pieces = pieces - 1`, eight at a time, each is answered with
# one changed row, and fewer than 400 pieces are gone. It needs Go 1.22 or newer. Exits with 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >main.go <<'GO'
package main

import (
	"database/sql"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	gms "github.com/dolthub/go-mysql-server/sql"
	_ "github.com/go-sql-driver/mysql"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	return value
}

func main() {
	database := memory.NewDatabase("d")
	database.EnablePrimaryKeyIndexes()
	provider := memory.NewDBProvider(database)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	config := server.Config{Protocol: "tcp", Address: listener.Addr().String(), Listener: listener}
	served := must(server.NewServer(config, sqle.NewDefault(provider), gms.NewContext, memory.NewSessionBuilder(provider), nil))
	go served.Start()
	db := must(sql.Open("mysql", "root@tcp("+listener.Addr().String()+")/d"))
	db.SetMaxOpenConns(8)
	must(db.Exec("CREATE TABLE stock (id INT PRIMARY KEY, pieces INT)"))
	must(db.Exec("INSERT INTO stock VALUES (1, 1000)"))
	var sold atomic.Int64
	var buyers sync.WaitGroup
	for range 8 {
		buyers.Add(1)
		go func() {
			defer buyers.Done()
			for range 50 {
				done := must(db.Exec("UPDATE stock SET pieces = pieces - 1 WHERE id = 1 AND pieces > 0"))
				sold.Add(must(done.RowsAffected()))
			}
		}()
	}
	buyers.Wait()
	var left int64
	if err := db.QueryRow("SELECT pieces FROM stock").Scan(&left); err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	fmt.Printf("go-mysql-server 0.20.0: %d rows changed, %d pieces gone\n", sold.Load(), 1000-left)
	if sold.Load() != 400 || 1000-left >= 400 {
		os.Exit(1)
	}
	os.Exit(0)
}
GO
{
    go mod init finding
    go get github.com/dolthub/go-mysql-server@v0.20.0 github.com/go-sql-driver/mysql@v1.7.2-0.20231213112541-0004702b931d
    go mod tidy
    go build -p 1 -o finding .
} >build.log 2>&1 || { tail build.log; exit 2; }
./finding 2>/dev/null
