#!/usr/bin/env bash
# bombardier 1.2.6 (fasthttp 1.46.0): ten POSTs with a body, one connection. The server answers the first on each connection, and hangs up on the second once it has
# read it: it reads 19, and bombardier reports ten answers of 200 and no error. Where it always hangs up it reads 50, and ten errors are reported. Needs Go 1.22 or
# newer. Exits with 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat >main.go <<'GO'
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
)

func main() {
	answered, read := int64(1), atomic.Int64{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	serve := func(connection net.Conn) {
		defer connection.Close()
		buffer := bufio.NewReader(connection)
		for n := int64(1); ; n++ {
			request, err := http.ReadRequest(buffer)
			if err != nil {
				return
			}
			io.Copy(io.Discard, request.Body)
			read.Add(1)
			if n > answered {
				return
			}
			fmt.Fprint(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(connection)
		}
	}()
	seen := []string{}
	for _, answered = range []int64{1, 0} {
		read.Store(0)
		said, err := exec.Command("./bombardier", "-n", "10", "-c", "1", "-m", "POST", "-b", "a=1", "http://"+listener.Addr().String()).CombinedOutput()
		if err != nil {
			panic(err)
		}
		codes := regexp.MustCompile(`2xx - \d+|others - \d+`).FindAllString(string(said), -1)
		line := fmt.Sprintf("bombardier 1.2.6, answered on a connection: %d; read %d, reported %s", answered, read.Load(), strings.Join(codes, ", "))
		fmt.Println(line)
		seen = append(seen, line)
	}
	if strings.Join(seen, "\n") != "bombardier 1.2.6, answered on a connection: 1; read 19, reported 2xx - 10, others - 0\n"+
		"bombardier 1.2.6, answered on a connection: 0; read 50, reported 2xx - 0, others - 10" {
		os.Exit(1)
	}
}
GO
{
    GOPATH="$folder/go" GOBIN="$folder" go install github.com/codesenberg/bombardier@v1.2.6
    go mod init finding
    go build -o finding .
} >build.log 2>&1 || { tail build.log; exit 2; }
./finding
