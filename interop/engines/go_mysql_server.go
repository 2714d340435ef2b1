package main

import (
	"os"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
)

func main() {
	db := memory.NewDatabase("d")
	db.EnablePrimaryKeyIndexes()
	provider := memory.NewDBProvider(db)
	config := server.Config{Protocol: "tcp", Address: os.Args[1]}
	s, err := server.NewServer(config, sqle.NewDefault(provider), sql.NewContext, memory.NewSessionBuilder(provider), nil)
	if err != nil {
		panic(err)
	}
	panic(s.Start())
}
