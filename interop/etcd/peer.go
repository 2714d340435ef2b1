// A Go process that is told by lines what to do, so that a test in another language can watch etcd's own locks: `concurrency.Mutex`
// of its client (KIND `lock`), and its lock service (KIND `rpc`).
//
//  1. A line on stdin is `ID WHO COMMAND ARGUMENT…`. WHO is a goroutine of that name, made when it is first named, and has locks of
//     its own.
//  2. The goroutines do not wait for each other.
//  3. Each line on stdout is `ID ok ANSWER` or `ID failed ERROR`, in the order in which they end.
//
// The end of stdin ends the process. Its one argument is the endpoints, with commas. Times are milliseconds.
//
//	ping                  a round trip
//	acquire KIND NAME     waits
//	try KIND NAME WAIT    true, false
//	release KIND NAME
//	number KIND NAME      1 where this goroutine holds it, else 0
//	sections KIND NAME N  N times: take it, read NAME-counter, write one more, free it. The answer is the most that were inside
//	                      at once, as seen here: each who is in has a key below NAME-inside/
//	pairs KIND NAME N     N times: take it, free it. The answer is the microseconds of one pair, without those of a lease, which
//	                      `lock` grants once
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
)

// Longer than a test.
const leaseSeconds = 600

// A lock of one goroutine; `take` returns how it is freed.
type lock interface {
	take(ctx context.Context, client *clientv3.Client, lease clientv3.LeaseID, name string) (func() error, error)
}

// concurrency.Mutex.
type mutex struct{}

func (mutex) take(ctx context.Context, client *clientv3.Client, lease clientv3.LeaseID, name string) (func() error, error) {
	session, err := concurrency.NewSession(client, concurrency.WithLease(lease))
	if err != nil {
		return nil, err
	}
	held := concurrency.NewMutex(session, name)
	if err := held.Lock(ctx); err != nil {
		session.Orphan()
		return nil, err
	}
	return func() error {
		defer session.Orphan()
		return held.Unlock(context.Background())
	}, nil
}

// The lock service.
type rpc struct{}

func (rpc) take(ctx context.Context, client *clientv3.Client, lease clientv3.LeaseID, name string) (func() error, error) {
	service := v3lockpb.NewLockClient(client.ActiveConnection())
	held, err := service.Lock(ctx, &v3lockpb.LockRequest{Name: []byte(name), Lease: int64(lease)})
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := service.Unlock(context.Background(), &v3lockpb.UnlockRequest{Key: held.Key})
		return err
	}, nil
}

var kinds = map[string]lock{"lock": mutex{}, "rpc": rpc{}}

// What one WHO holds, by kind and name: how it is freed.
type worker struct {
	client *clientv3.Client
	held   map[string]func() error
}

// Takes the lock with a lease of its own, which goes with it.
func (w *worker) take(ctx context.Context, kind, name string) (func() error, error) {
	lease, err := w.client.Grant(context.Background(), leaseSeconds)
	if err != nil {
		return nil, err
	}
	revoke := func() error {
		_, err := w.client.Revoke(context.Background(), lease.ID)
		return err
	}
	free, err := kinds[kind].take(ctx, w.client, lease.ID, name)
	if err != nil {
		return nil, errors.Join(err, revoke())
	}
	return func() error { return errors.Join(free(), revoke()) }, nil
}

func (w *worker) run(words []string) (string, error) {
	ctx := context.Background()
	if words[0] == "ping" {
		_, err := w.client.Get(ctx, "/")
		return "pong", err
	}
	command, kind, name := words[0], words[1], words[2]
	key := kind + " " + name
	switch command {
	case "acquire", "try":
		if command == "try" {
			millis, err := strconv.Atoi(words[3])
			if err != nil {
				return "", err
			}
			// A round trip more, or no try would be in time.
			limited, cancel := context.WithTimeout(ctx, time.Duration(millis)*time.Millisecond+time.Second)
			defer cancel()
			ctx = limited
		}
		free, err := w.take(ctx, kind, name)
		// The client and the service each have a code of their own for it.
		if err != nil && strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
			return "false", nil
		}
		if err != nil {
			return "", err
		}
		w.held[key] = free
		return "true", nil
	case "release":
		free, ok := w.held[key]
		if !ok {
			return "", errors.New("not held")
		}
		delete(w.held, key)
		return "released", free()
	case "number":
		if _, ok := w.held[key]; ok {
			return "1", nil
		}
		return "0", nil
	case "sections", "pairs":
		times, err := strconv.Atoi(words[3])
		if err != nil {
			return "", err
		}
		if command == "pairs" {
			return w.pairs(kind, name, times)
		}
		return w.sections(kind, name, times)
	}
	return "", fmt.Errorf("no command %s", command)
}

func (w *worker) sections(kind, name string, times int) (string, error) {
	ctx, counter, most := context.Background(), name+"-counter", int64(0)
	for range make([]struct{}, times) {
		free, err := w.take(ctx, kind, name)
		if err != nil {
			return "", err
		}
		own := fmt.Sprintf("%s-inside/%d-%d", name, os.Getpid(), time.Now().UnixNano())
		if _, err := w.client.Put(ctx, own, ""); err != nil {
			return "", err
		}
		inside, err := w.client.Get(ctx, name+"-inside/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return "", err
		}
		most = max(most, inside.Count)
		before, err := w.client.Get(ctx, counter)
		if err != nil {
			return "", err
		}
		counted, err := strconv.Atoi(string(before.Kvs[0].Value))
		if err != nil {
			return "", err
		}
		if _, err := w.client.Put(ctx, counter, strconv.Itoa(counted+1)); err != nil {
			return "", err
		}
		if _, err := w.client.Delete(ctx, own); err != nil {
			return "", err
		}
		if err := free(); err != nil {
			return "", err
		}
	}
	return strconv.FormatInt(most, 10), nil
}

func (w *worker) pairs(kind, name string, times int) (string, error) {
	lease, err := w.client.Grant(context.Background(), leaseSeconds)
	if err != nil {
		return "", err
	}
	begun := time.Now()
	for range make([]struct{}, times) {
		free, err := kinds[kind].take(context.Background(), w.client, lease.ID, name)
		if err == nil {
			err = free()
		}
		if err != nil {
			return "", err
		}
	}
	return strconv.FormatInt(time.Since(begun).Microseconds()/int64(times), 10), nil
}

func main() {
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(os.Args[1], ",")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var writing sync.Mutex
	answer := func(number, outcome, text string) {
		writing.Lock()
		defer writing.Unlock()
		fmt.Println(number, outcome, strings.ReplaceAll(text, "\n", " "))
	}
	workers := map[string]chan []string{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		commands, ok := workers[words[1]]
		if !ok {
			commands = make(chan []string, 64)
			workers[words[1]] = commands
			worker := worker{client: client, held: map[string]func() error{}}
			go func() {
				for words := range commands {
					text, err := worker.run(words[2:])
					if err != nil {
						answer(words[0], "failed", err.Error())
					} else {
						answer(words[0], "ok", text)
					}
				}
			}()
		}
		commands <- words
	}
}
