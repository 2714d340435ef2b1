#!/usr/bin/env bash
# autocannon 9.0.0 with a rate of 50/s: each answer takes 150 ms, and there are latencies from 1 ms on, their median about 85 ms, more than 10 times as many as
# requests. And where a server hangs up on every request it reports no error. Needs Node.js and npm. Exits with 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts autocannon@9.0.0 >npm.log 2>&1 || { tail npm.log; exit 2; }
cat >probe.js <<'JS'
const autocannon = require('autocannon')
const http = require('http')

let read = 0
const server = http.createServer((request, response) => {
  if (request.url !== '/hangs-up') return setTimeout(() => response.end('ok'), 150)
  read++
  request.socket.destroy()
})
server.listen(0, '127.0.0.1', async () => {
  const url = `http://127.0.0.1:${server.address().port}`
  const rate = await autocannon({ url, connections: 10, overallRate: 50, duration: 6 })
  console.log(`autocannon 9.0.0, overallRate 50, each answer 150 ms: min ${rate.latency.min} ms, median ${rate.latency.p50} ms, ` +
    `${rate.latency.totalCount} latencies of ${rate.requests.total} requests`)
  const none = await autocannon({ url: `${url}/hangs-up`, method: 'POST', body: 'a=1', connections: 1, amount: 10 })
  console.log(`autocannon 9.0.0, no answer to any of ten: read ${read}, errors ${none.errors}, timeouts ${none.timeouts}, 2xx ${none['2xx']}`)
  const same = rate.latency.min < 100 && rate.latency.totalCount > 10 * rate.requests.total &&
    read === 10 && none.errors === 0 && none['2xx'] === 0
  process.exit(same ? 0 : 1)
})
JS
node probe.js 2>/dev/null
