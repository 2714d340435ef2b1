/** Why something failed: the service says it in English, and the Chinese page in Chinese. A reason without a translation stays as it is. */

/** Each beginning or sentence of the service, and what it is in Chinese; a function has what the brackets match. @type {[RegExp, (...parts: string[]) => string][]} */
const REASONS = [
  // The field is marked, and needs no name.
  [/^(?:acquire|release|renew): (.*)$/s, (rule) => chinese(rule)],

  [/^the replay left its script: (.*)$/s, (why) => `重演没有按剧本走：${chinese(why)}`],
  [/^it was cancelled$/, () => '已取消'],
  [/^it took longer than (\d+) s$/, (s) => `超过 ${s} 秒还没有演完`],
  [/^nobody asked for the next step within (\d+) s$/, (s) => `${s} 秒里没有人按下一步`],
  [/^a step was asked for without an actor \(a bug\)$/, () => '按了下一步，却没有说是谁（这是程序的错）'],
  [/^the servers are no longer read \(a bug\)$/, () => '不再读服务器了（这是程序的错）'],
  [/^(\w+) did not come to (.*) within (\d+) s$/, (who, what, s) => `${who} 在 ${s} 秒里没有走到 ${what === 'its end' ? '最后' : what}`],
  [/^(\w+) has not come to (.*), but to its end: .*$/s, (who, what) => `${who} 没有走到 ${what}，就已经结束`],
  [/^(\w+) was ended before it could report its result$/, (who) => `${who} 还没报告结果就被结束了`],
  [/^(\w+) has not started yet$/, (who) => `${who} 还没有开始`],
  [/^(\w+) does not run$/, (who) => `${who} 没有在运行`],
  [/^the instance does not answer: (.*)$/s, (why) => `这个实例没有应答${because(why)}`],
  [/^there is no lab to inject faults: .*$/, () => '没有 lab 来制造故障：请用 oversell lab 启动服务器'],
  [/^the replay runs in one instance, and needs the instances of a cluster .*$/, () => '这场重演只在一个实例里，它需要集群的几个实例（cluster.instances）'],
  [/^(pause|resume|kill|start|cut|slow|mend|expire|jump|promote) (\S+): (.*)$/s, (action, member, why) => `oversell lab fault ${action} ${member} 没有做成${because(why)}`],
  [/^an instance does not reach Redis after the fail-over$/, () => '故障转移以后，有一个实例连不上 Redis'],
  [/^a server does not answer after its fault was undone$/, () => '故障恢复以后，有一个服务器没有应答'],
  [/^the main Redis was not replaced$/, () => '没有从节点升为主节点'],
  [/^the lease of the lock did not end$/, () => '锁的租约没有到期'],
  [/^the lease of the lock is not over$/, () => '锁的租约还没有到期'],
  [/^the end of the lease was not seen$/, () => '没有看到租约到期'],
  [/^the lock has no lease that could (?:end|be over)$/, () => '锁没有租约，不会到期'],
  [/^the node still has the lock$/, () => '节点上的锁还在'],
  [/^the lock did not become free$/, () => '锁没有空出来'],
  [/^nobody has taken the lock$/, () => '没有人拿到锁'],
  [/^it is (?:no deadlock|played as a whole)$/, () => '这一场不能这样演（这是程序的错）'],

  [/^sold out$/, () => '售罄'],
  [/^stock_id (\S+): there is no such product; .*$/, (id) => `没有商品 ${id}：用 PUT /stock?stock_id=${id} 新建`],
  [/^redis has lost the stock of product (\S+); .*$/, (id) => `redis 里没有商品 ${id} 的库存：用 PUT /stock?stock_id=${id} 重置`],
  [/^redis has lost the stock of voucher (\S+); .*$/, (id) => `redis 里没有优惠券 ${id} 的库存：用 POST /voucher 新建一张`],
  [/^a key of redis holds another type than this lock's .*$/, () => 'redis 里锁的键是别的类型（WRONGTYPE）：用 redis-cli TYPE 查看，用 PUT /stock 清除'],
  [/^no id: (.*)$/s, (why) => `发不出全局 id${because(why)}`],
  [/^the clock is not within the 31 bits of seconds from (\S+) to (\S+)$/, (from, to) => `时钟不在 ${from} 到 ${to} 之间，31 位的秒数放不下`],
  [/^(\S+) has counted 2\^32 ids today; .*$/, (key) => `${key} 今天已经发了 2^32 个 id，UTC 零点以后才有新的`],
  [/^(\S+) prefixes were begun today, .*$/, (n) => `今天已经有 ${n} 个前缀，UTC 零点以后才能用新的`],
  [/^another transaction has changed a row after this one read it, .*$/, () => '读过的行被别的事务改了，MariaDB 回滚了这个事务（错误 1020）；设 SET GLOBAL innodb_snapshot_isolation=OFF，就改为等行锁'],
  [/^lock (\S+) is taken, and this request does not wait$/, (name) => `锁 ${name} 已被占用，这个请求不等`],
  [/^lock (\S+) was lost before the write$/, (name) => `写之前锁 ${name} 已经丢失`],
  [/^lock (\S+) was lost before it was released$/, (name) => `释放之前锁 ${name} 已经丢失`],
  [/^token (\S+) of lock (\S+) is refused: the row has seen token (\S+) of a newer holder$/, (token, name, seen) => `锁 ${name} 的令牌 ${token} 被拒绝：行见过更新的令牌 ${seen}`],
  [/^lock (.+) was not acquired within (\d+) ms$/, (name, ms) => `${ms} ms 内没有拿到锁 ${name}`],
  [/^(mysql|redis) connection pool was not acquired within (\d+) ms$/, (server, ms) => `${ms} ms 内没有等到 ${server} 的连接`],
  [/^(.+) was not acquired within (\d+) ms$/, (what, ms) => `${ms} ms 内没有拿到 ${what}`],
  [/^the wait for (\S+) timed out after (\d+) ms$/, (name, ms) => `等 ${name} 超过 ${ms} ms`],
  [/^all connections of the pool were in use for (\d+) ms$/, (ms) => `${ms} ms 内连接池的连接全被占用`],
  [/^a piece was taken, and its order was not written: (.*)$/s, (why) => `扣了库存，没写成订单${because(why)}`],
  [/^there is no strategy (\S+)$/, (slug) => `没有这个策略：${slug}`],
  [/^the rate limit is reached; try again later$/, () => '被限流，请稍后再试'],
  [/^the request took longer than (\d+) ms (\S+) and was dropped$/, (ms, setting) => `请求超过 ${ms} ms，已被放弃${setting.replace('(', '（').replace(')', '）')}`],
  [/^there is no voucher (\d+); .*$/, (id) => `没有优惠券 ${id}：用 POST /voucher 新建`],
  [/^the seckill has not begun yet$/, () => '秒杀尚未开始'],
  [/^the seckill is over$/, () => '秒杀已经结束'],
  [/^this user has ordered the voucher already$/, () => '用户已经购买过一次'],
  [/^another order of this user is in progress; a user orders once$/, () => '这个用户的另一单还没完：不允许重复下单'],
  [/^there is no order (\d+)$/, (id) => `没有这个订单：${id}`],
  [/^panicked: .*$/s, () => '内部错误（这是程序的错）'],
  [/^(?:a fenced lock without a token|there is no stage|claim\.lua returned .*|a script sends before the last answer)$/, () => '内部错误（这是程序的错）'],
  [/^EXPLAIN has answered without a column `type`$/, () => 'EXPLAIN 的结果里没有 type 这一列'],
  [/^latch (\S+) was open (\d+) times after it was set$/, (name, n) => `闭锁 ${name} 设了 ${n} 次，每次都已经打开`],

  [/^it was cancelled before it began$/, () => '开始之前已取消'],
  [/^its visitor has left the queue$/, () => '排队的人已经离开'],
  [/^the load generator panicked; .*$/, () => '发请求的程序出错了，原因在日志里'],
  [/^threads and loops are 1 or more$/, () => 'threads 和 loops 至少是 1'],
  [/^threads × loops(?: × hold_ms)? is at most (\d+)(?:, .*)?$/, (most) => `threads、loops（和 hold_ms）的乘积不能大于 ${most}`],
  [/^there is no step (\S+)$/, (slug) => `没有这个下单策略：${slug}`],
  [/^(\S+) is not an address such as (\S+)$/, (at, such) => `${at} 不是 ${such} 这样的地址`],
  [/^(\S+) is not a path$/, (path) => `${path} 不是路径`],
  [/^(\S+) does not answer: (.*)$/s, (at, why) => `${at} 没有应答${because(why)}`],
  [/^(GET \S+) does not know the stock of (\S+)$/, (asked, store) => `${asked} 的应答里没有 ${store} 的库存`],
  [/^((?:GET|PUT|POST|DELETE) \S+): (.*)$/s, (asked, why) => `${asked} 没有成功${because(why)}`],

  [/^the instance at (\S+) did not play its actor: (.*)$/s, (at, why) => `实例 ${at} 没有应答${because(why)}`],
  [/^(\S+) is not available: (.*)$/s, (server, why) => `${server} 不可用${because(why)}`],
  [/^(\S+) is not available$/, (server) => `${server} 不可用`],
  [/^(\S+) did not answer a write; its outcome is unknown: (.*)$/s, (server, why) => `${server} 没有应答一次写入，不知道写成了没有${because(why)}`],
  // In brackets are the server's own words.
  [/^(\S+) refuses this: (.*) \(.*\)$/s, (server, why) => `${server} 拒绝了${because(why)}`],
  [/^(\S+) refuse[sd](?: this)?: (.*)$/s, (server, why) => `${server} 拒绝了${because(why)}`],
  [/^(\d+) of (\d+) nodes answered, (\d+) needed$/, (n, all, most) => `${all} 个节点只有 ${n} 个应答，至少要 ${most} 个`],
  [/^its lease ended before (?:.*): it is given back$/, () => '等到应答时，租约已经到期：锁已还回'],
  [/^the release was not answered; .*$/, () => '释放没有应答，还会再试'],
  [/^(.*); whether the change was made is not known$/s, (why) => `${chinese(why)}，不知道改成了没有`],
  [/^the session is over$/, () => '会话结束了'],
  [/^not yet connected$/, () => '还没有连上'],
  [/^no answer$/, () => '没有应答'],
  [/^no connection in time$/, () => '没有及时连上'],
  [/^no answer in time\b.*$/, () => '没有及时应答'],
  [/^no answer within the time limit$/, () => '时限内没有应答'],
  [/^a new connection is not answered$/, () => '新的连接没有应答'],
  [/^its address has no host$/, () => '地址里没有主机'],
  [/^the client was closed$/, () => '客户端已关闭'],
  [/^not the JSON that was expected: .*$/s, () => '应答不是预期的 JSON'],
  [/^(\d{3}) [A-Z].*$/s, (status) => `应答是 HTTP ${status}`],

  [/^another transaction is in the way .*$/, () => '另一个事务挡着（行锁，或集群的表决）'],
  [/^its table or its disk is full$/, () => '表或磁盘满了'],
  [/^it has as many connections as it allows$/, () => '连接数到了上限'],
  [/^the user of (\S+) may not do this$/, (setting) => `${setting} 里的用户没有这个权限`],
  [/^it knows no such user and password: correct (\S+)$/, (setting) => `用户或密码不对：请改 ${setting}`],
  [/^this node is not part of its cluster now$/, () => '这个节点现在不在集群里'],
  [/^the database or a table is missing; .*$/, () => '缺少数据库或表：实例启动时连得上 MySQL，就会建表'],
  [/^it is shutting down or offline$/, () => '正在关闭，或已下线'],
  [/^it knows no mysql\.causal_reads, .*$/, () => '它没有 mysql.causal_reads，Galera 集群才有'],
  [/^it is read-only$/, () => '它是只读的'],
  [/^it has ended the statement$/, () => '语句被它终止了'],
  [/^it has closed a connection that nobody used$/, () => '它关掉了一个闲置的连接'],
  [/^a script fails in it: (.*)$/s, (said) => `脚本出错：${said}`],
  [/^another node of its Redis Cluster has the key: .*$/, () => '键在 Redis Cluster 的另一个节点：把 redis.prefix 设成花括号里的名字，如 "{oversell}:"，把 redis.url 设成有这个槽的节点（CLUSTER KEYSLOT）'],
  [/^it is a Redis Cluster, and the keys of this are in several of its slots: .*$/, () => '这是 Redis Cluster，用到的键在几个槽里：把 redis.prefix 设成花括号里的名字，如 "{oversell}:"，所有的键就在一个槽里'],
  [/^a slot of its Redis Cluster is on its way to another node$/, () => 'Redis Cluster 的一个槽正在迁移'],
  [/^its main node or its replicas are away$/, () => '它的主节点或从节点不在'],
  [/^it is still reading its file$/, () => '它还在载入数据文件'],
  [/^it cannot write its file, and takes no writes$/, () => '它写不了数据文件，不接受写入'],
  [/^it is full \(maxmemory\)$/, () => '内存满了（maxmemory）'],
  [/^it is a replica, and takes no writes$/, () => '它是从节点，不接受写入'],

  [/^(\S+) is not allowed: a script has .*$/s, (word) => `不能用 ${word}：脚本里只有 redis.call、ARGV、tonumber、tostring、if、and、or、not、return、整数和自己的局部变量，没有循环，没有函数`],
  [/^(\S+) is not allowed; the commands are (.*)$/s, (command, all) => `不能用命令 ${command}；可以用的命令：${all}`],
  [/^(\S+) is not allowed$/, (sign) => `不能用 ${sign}`],
  [/^(\S+) takes no other key than KEYS\[1\]$/, (command) => `${command} 只能用 KEYS[1] 这一个键`],
  [/^must be at most (\d+) bytes$/, (n) => `最多 ${n} 字节`],
  [/^must not be empty$/, () => '不能为空'],
  [/^only redis\.call, tonumber and tostring may be called$/, () => '只能调用 redis.call、tonumber 和 tostring'],
  [/^ARGV stands only as ARGV\[1\] or ARGV\[2\]$/, () => 'ARGV 只能写成 ARGV[1] 或 ARGV[2]'],
  [/^KEYS\[1\] stands only behind the command of a redis\.call$/, () => 'KEYS[1] 只能写在 redis.call 的命令后面'],
  [/^local is followed by a name of your own$/, () => 'local 后面要写自己起的名字'],
  [/^redis stands only as redis\.call\('command', KEYS\[1\], …\)$/, () => "redis 只能写成 redis.call('命令', KEYS[1], …)"],
  [/^a comment ends with its line$/, () => '注释只能写到行尾'],
  [/^a text has no end$/, () => '字符串没有结束'],
  [/^a text has no \\ and no second line$/, () => '字符串里不能有 \\，也不能换行'],
  [/^(.+) in line (\d+) is not ASCII.*$/, (named, line) => `第 ${line} 行的 ${named} 不是 ASCII 字符，它只能写在字符串和注释里`],
  [/^redis does not understand it: (.*)$/s, (why) => `Redis 看不懂：${why}`],

  [/^greater than (\S+)$/, (most) => `不能大于 ${most}`],
  [/^lower than (\S+)$/, (least) => `不能小于 ${least}`],
  [/^length is greater than (\d+)$/, (most) => `最多 ${most} 个`],
  [/^length is lower than (\d+)$/, (least) => `至少 ${least} 个`],
  [/^must be at most (\S+)$/, (most) => `不能大于 ${most}`],
  [/^times threads must be at most (\S+)$/, (most) => `和 threads 的乘积不能大于 ${most}`],
  [/^must be one of (.*)$/, (names) => `只能是 ${names}`],
  [/^must be (\d+) to (\d+) of a-z, 0-9, - and _$/, (least, most) => `要 ${least} 到 ${most} 个小写字母、数字、- 或 _`],
  [/^must be a positive whole number$/, () => '要是正整数'],
  [/^must be a whole number from (\d+) to (\d+)$/, (least, most) => `要是 ${least} 到 ${most} 的整数`],
  [/^(.*) stands where a whole number must be$/, (value) => `要是整数，不能是 ${value}`],
  [/^must be a JSON object: .*$/s, () => '要是一个 JSON 对象'],
  [/^is missing$/, () => '没有写'],
  [/^is too long$/, () => '太长'],
  [/^is refused$/, () => '不接受'],
  [/^(\S+) is asked itself, and could not answer: .*$/, (name) => `${name} 正是要问的那个实例，它会无法应答：请问另一个，如 /instances/NAME/lab/faults`],
  [/^is nginx's: this instance knows of none .*$/, () => '是 nginx 的限流，这个实例不知道 nginx 在哪里（设置 cluster.http）'],
  [/^this race has no schedule that a person decides: take another pace$/, () => '这一场不能由人排顺序：请换一种节奏'],
  [/^no lease ends in this race: take another pace$/, () => '这一场没有租约到期：请换一种节奏'],

  // The words of the operating system and of the servers' clients come last: they may stand in any of the above.
  [/^.*connection refused.*$/is, () => '连接被拒绝'],
  [/^.*(?:connection reset|broken pipe|connection aborted|unexpected eof|early eof|unexpected end of file|multiplexed connection driver|connection closed|not connected).*$/is, () => '连接断了'],
  [/^.*(?:timed out|timeout|deadline has elapsed).*$/is, () => '超时'],
  [/^([\w.[\]-]+): (.*)$/s, (field, rule) => `${field}：${chinese(rule)}`],
];

/** @param {string} reason @returns {string} */
function chinese(reason) {
  for (const [pattern, words] of REASONS) {
    const parts = pattern.exec(reason);
    if (parts) return words(...parts.slice(1));
  }
  return reason;
}

/** Why, where it has a translation: the words of a server's client are in its log. @param {string} why */
function because(why) {
  const words = chinese(why);
  return /\p{Script=Han}/u.test(words) ? `：${words}` : '';
}

/** @param {'zh' | 'en'} lang @param {string} reason */
export const reasonText = (lang, reason) => (lang === 'zh' ? chinese(reason) : reason);

/** Somebody pressed Cancel, which is no failure. @param {string} reason */
export const isCancelled = (reason) => /^(the replay left its script: )?it was cancelled/.test(reason);
