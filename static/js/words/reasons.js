/** Why something failed: the service says it in English, and the Chinese page in Chinese. A reason without a translation stays as it is. */

/** Each beginning or sentence of the service, and what it is in Chinese; a function has what the brackets match. @type {[RegExp, (...parts: string[]) => string][]} */
const REASONS = [
  // The field is marked, and needs no name.
  [/^(?:acquire|release|renew): (.*)$/s, (rule) => chinese(rule)],
  [/^the replay left its script: (.*)$/s, (why) => `重演没有按剧本走：${chinese(why)}`],
  [/^it took longer than (\d+) s$/, (s) => `超过 ${s} 秒还没有演完`],
  [/^nobody asked for the next step within (\d+) s$/, (s) => `${s} 秒里没有人按下一步`],
  [/^(\w+) did not come to (.*) within (\d+) s$/, (who, what, s) => `${who} 在 ${s} 秒里没有走到 ${what}`],
  [/^the instance at (\S+) did not play its actor: (.*)$/s, (at, why) => `实例 ${at} 没有应答：${chinese(why)}`],
  [/^(\S+) is not available: (.*)$/s, (server, why) => `${server} 不可用：${chinese(why)}`],
  [/^(\S+) did not answer a write; its outcome is unknown: (.*)$/s, (server, why) => `${server} 没有应答一次写入，不知道写成了没有：${chinese(why)}`],
  [/^(\d+) of (\d+) nodes answered, (\d+) needed$/, (n, all, most) => `${all} 个节点只有 ${n} 个应答，至少要 ${most} 个`],
  [/^.*connection refused.*$/is, () => '连接被拒绝'],
  [/^.*connection reset.*$/is, () => '连接断了'],
  [/^(.+) was not acquired within (\d+) ms$/, (what, ms) => `${ms} ms 内没有拿到 ${what}`],
  [/^lock (\S+) was lost before the write$/, (name) => `写之前锁 ${name} 已经丢失`],

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
];

/** @param {string} reason @returns {string} */
function chinese(reason) {
  for (const [pattern, words] of REASONS) {
    const parts = pattern.exec(reason);
    if (parts) return words(...parts.slice(1));
  }
  return reason;
}

/** @param {'zh' | 'en'} lang @param {string} reason */
export const reasonText = (lang, reason) => (lang === 'zh' ? chinese(reason) : reason);

/** Somebody pressed Cancel, which is no failure. @param {string} reason */
export const isCancelled = (reason) => /^(the replay left its script: )?it was cancelled/.test(reason);
