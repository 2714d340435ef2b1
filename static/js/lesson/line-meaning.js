/**
 * What a typed line does and what its answer means, as a row of a table: who, at which server, what, and the answer without noise. Pure.
 *
 * It is read from the line itself, so that no lesson needs a text of its own: the parts of the line (a request, a command, a statement, a
 * fault) are found wherever they stand, in the order in which they stand.
 */

import { t } from '../shared/language.js';

/** @typedef {import('./course.js').Line} Line */
/** `who`: empty: whoever sits at this terminal; `typed`: it is a command or statement as it is typed, no words of ours. @typedef {{who: string, where: string, does: string, typed?: boolean}} Part */
/** `wrong`: more was sold than there is, or than one may have. @typedef {{text: string, wrong: boolean}} Meaning */
/** @typedef {{terminal: number, who: string, where: string, does: {text: string, typed: boolean}[]}} Row */

/** The newest voucher, as a statement within a line asks for it. */
const NEWEST_VOUCHER = /\$\(mysql [^$]*?select max\(voucher_id\)[^)]*\)/g;
/** What a ZooKeeper client prints around its answer. */
const NOISE = /SLF4J|log4j|Connecting to|^Welcome|JLine|^WATCHER::|\[(main|nioEventLoop|zk:)|INFO|WARN|type:None|^Exiting|ZooKeeper -server|^\s*$/;
const WATCH_EVENT = /type:(Node\w+) path:(\S+)/;
/** Fields of a node's state that say what kind it is. */
const NODE_FIELDS = /^(ephemeralOwner|dataVersion|numChildren)\b/;
/** Longer texts are cut. */
const MAX_CHARS = 160;

/** Each kind of part, as it stands in a line; sorted by where it is found. @type {[RegExp, (...found: string[]) => Part | null][]} */
const KINDS = [
  [/\bcurl (?:[^;|&]|&(?=[a-z_]+=))*/g, request],
  [/(?:printf '([^']*)' \| |\bzkCli\.sh )(?:zkCli\.sh )?-server \S+(?: ((?:[^;|2]|2(?!>&1))+))?/g, (piped, command) => zookeeper(piped ?? command ?? '')],
  [/\(?(?:echo|printf|seq)[^|]*\| *(?:timeout \d+ )?redis-cli (?:-h \S+ )?-p (?:"[^"]*"|\S+)/g, () => ({ who: '', where: 'Redis', does: t('stepRedisMany') })],
  [/\bredis-cli (?:-h \S+ )?(?:-p (?:"[^"]*"|\S+) )?((?:"[^"]*"|'[^']*'|\{[^}]*\}|[^;|&)])+)/g, redis],
  [/\bmysql (?:"[^"]*"|[^"';|])*?-(?:N?e) *('[^']*'|"[^"]*"|shutdown)/g, (sql) => ({ who: '', where: 'MySQL', ...statement(sql.replaceAll(/^['"]|['"]$/g, '')) })],
  [/\becho ("[^"]*") \| mysql\b/g, (sql) => ({ who: '', where: 'MySQL', ...statement(sql.slice(1, -1)) })],
  [/\betcdctl --endpoints "[^"]*" ([^;|&]+)/g, (command) => ({ who: '', where: 'etcd', does: cut(command.replace(/ (?:--lease=|< |2>).*/, '').trim()), typed: true })],
  [/\betcd --data-dir \S+(?: (--quota-backend-bytes \d+))?/g, (quota) => ({ who: '', where: 'etcd', does: `etcd ${quota ?? ''}`.trim(), typed: true })],
  [/\bkill -9(?= "\$\(cat)/g, () => ({ who: '', where: 'etcd', does: 'kill -9', typed: true })],
  [/\bredis-server\b.*|^mkdir .*\/by-hand-cluster\/.*/g, () => ({ who: '', where: t('stepLab'), does: t('stepRedisServers') })],
  [/\boversell lab fault (?:--lab-json \S+ )?(\w+) (\$?"?[\w.$()/ -]*?"?)(?= --|;|$| \||\))/g, (action, member) => ({ who: '', where: t('stepLab'), does: t('stepFault', action, memberOf(member)) })],
  [/\boversell lab (--(?:sentinels|zookeeper|galera|etcd|http-port)[^>]*)/g, (options) => ({ who: '', where: t('stepLab'), does: t('stepOwnLab', /--(sentinels|zookeeper|galera|etcd) (\d)/.exec(options)?.slice(1).join(' ') ?? '') })],
  [/\bkill "\$\(cat target/g, () => ({ who: '', where: t('stepLab'), does: t('stepLabEnds') })],
  [/^ls target\/\S+lab\.json|> target\/\S+\.ports|^grep -o \S+ target/g, () => ({ who: '', where: t('stepLab'), does: t('stepLabStarts') })],
  [/\boversell compare .*--strategies (\S+)/g, (slugs) => ({ who: '', where: 'oversell', does: t('stepCompare', slugs.split(',').join(t('and'))) })],
  [/\bsleep (\d+(?:\.\d+)?)(?=;|$| &)/g, (s) => ({ who: '', where: '', does: t('stepSleep', s) })],
  [/\bnginx -t\b/g, () => ({ who: '', where: 'nginx', does: 'nginx -t', typed: true })],
  [/^wait$/g, () => ({ who: '', where: '', does: t('stepWait') })],
  [/^(?:had|there)=.*|^cat target\S+|^grep -o '.*\| uniq -c$|^if .*|^paste .*/g, () => ({ who: '', where: '', does: t('stepCount') })],
];

/** @param {Line} line @returns {Row} */
export function rowOf({ run, terminal }) {
  const line = run.replaceAll(NEWEST_VOUCHER, 'V').replace(/ &$/, '');
  const found = KINDS.flatMap(([like, make]) => [...line.matchAll(like)].map((match) => ({ from: match.index, to: match.index + match[0].length, part: make(...withWhole(match)) })));
  // What stands within another part is its argument.
  const parts = found.filter(({ from, to, part }) => part && !found.some((other) => other.part && other !== found.find((one) => one.part === part) && other.from <= from && to <= other.to && other.to - other.from > to - from))
    .sort((a, b) => a.from - b.from).map(({ part }) => /** @type {Part} */ (part));
  const distinct = (/** @type {string[]} */ all) => [...new Set(all.filter(Boolean))];
  return {
    terminal, who: distinct(parts.map(({ who }) => who)).join(t('and')), where: distinct(parts.map(({ where }) => where)).join(t('and')),
    does: parts.filter(({ does }, i) => does && !parts.slice(0, i).some((before) => before.does === does)).map(({ does, typed = false }) => ({ text: does, typed })),
  };
}

/** The groups of a match, or all of it where it has none. @param {RegExpMatchArray} match */
const withWhole = (match) => (match.length > 1 ? match.slice(1) : [match[0]]);

/** @param {string} text */
const cut = (text) => (text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…` : text);
/** @param {string} text */
const memberOf = (text) => (text.includes('$') ? '' : text.replaceAll('"', '').trim());

/** Statements that only look are told in words. @type {[RegExp, string][]} */
const LOOKS = [
  [/^select stock from tb_seckill_voucher/, 'stepVouchersLeft'], [/^select count\(\*\) from tb_voucher_order/, 'stepOrdersOf'],
  [/^show processlist/, 'stepProcesses'], [/trx_rows_modified/, 'stepTransactions'], [/^select count from db_stock where id = 1$/, 'stepLooksAtStock'],
];

/** @param {string} sql */
const statement = (sql) => {
  const look = LOOKS.find(([like]) => like.test(sql));
  return look ? { does: t(look[1]) } : { does: cut(sql), typed: true };
};

/** What `curl` asks a server for. @param {string} text @returns {Part | null} */
function request(text) {
  const url = /(?:https?:\/\/|telnet:\/\/|\$(?:http|at|one|\{\w+\}))[^\s'"]*/.exec(text)?.[0];
  if (!url) return null;
  if (url.startsWith('telnet:')) return { who: '', where: 'ZooKeeper', does: t('stepZkState') };
  const [, host = '', path = '/'] = /^(?:https?:\/\/([^/]+)|\$\w+)(\/.*)?$/.exec(url) ?? [];
  const query = new URLSearchParams(path.split('?')[1]?.replaceAll('{', '').replaceAll('}', '') ?? '');
  const [, from = '', to = ''] = /\[(\d+)-(\d+)\]/.exec(path) ?? [];
  const body = /-d '([^']*)'/.exec(text)?.[1] ?? '';
  const where = !host || host === globalThis.location?.host ? 'nginx' : t('stepInstance', host.split(':').at(-1));
  const user = /x-user-id: (\w+)/.exec(text)?.[1];
  const people = from ? t('stepPeople', Number(to) - Number(from) + 1) : user ? t('stepUser', user) : /^\w+$/.test(query.get('who') ?? '') ? query.get('who') ?? '' : '';
  const stays = query.get('hold_ms') && query.get('hold_ms') !== '0' ? t('stepStays', Number(query.get('hold_ms')) / 1000) : '';
  const lease = query.get('lease_ms') ? t('stepLease', Number(query.get('lease_ms')) / 1000) : '';
  const waits = query.get('wait_ms') ? t('stepWaits', Number(query.get('wait_ms')) / 1000) : '';
  const bare = path.split('?')[0];
  const what = /^\/voucher-order\/seckill/.test(bare) ? t('stepOrders', query.get('strategy') ?? '')
    : bare === '/voucher' ? t('stepVoucher', /"stock":(\d+)/.exec(body)?.[1] ?? '')
    : bare === '/stock' ? (body ? t('stepRestocks', /"count":(\d+)/.exec(body)?.[1] ?? '') : t('stepLooksAtStock'))
    : bare.startsWith('/check/lock/') ? t('stepBuys', bare.split('/').at(-1) ?? '')
    : bare.startsWith('/replays') ? t('stepReplay', bare.includes('$') ? '' : bare.split('/')[2] ?? '')
    : t('stepAsks', bare);
  return { who: people, where, does: [what, stays, lease, waits].filter(Boolean).join(t('stepComma')) };
}

/** @param {string} command @returns {Part} */
function redis(command) {
  return { who: '', where: 'Redis', does: cut(command.replace(/ 2>(&1)?.*$/, '').replace(/ > \/dev\/null.*$/, '').trim()), typed: true };
}

/** @param {string} commands @returns {Part} */
function zookeeper(commands) {
  return { who: '', where: 'ZooKeeper', does: commands.split('\\n').map((one) => one.trim()).filter((one) => one && one !== 'quit').join('; '), typed: true };
}

/** The answer without what a client prints around it. @param {string} text @returns {string} */
export function answerOf(text) {
  const outcome = /"outcome":"(\w+)"/.exec(text)?.[1];
  if (outcome) return `${outcome}${/"lock":"(\w+)"/.exec(text)?.[1] ? `, lock ${/"lock":"(\w+)"/.exec(text)?.[1]}` : ''}`;
  const remaining = /"remaining":(\d+)/.exec(text)?.[1];
  if (remaining) return `remaining ${remaining}${/"lock":"(\w+)"/.exec(text)?.[1] ? `, lock ${/"lock":"(\w+)"/.exec(text)?.[1]}` : ''}`;
  const count = /^\{"mysql":\{.*?"count":(\d+)/.exec(text)?.[1];
  if (count) return `count ${count}`;
  const lines = text.split('\n').flatMap((line) => {
    const event = WATCH_EVENT.exec(line);
    return event ? [`${event[1]} ${event[2]}`] : NOISE.test(line) ? [] : [line.trim()];
  });
  // Of a node's state only what tells its kind.
  const fields = lines.filter((line) => NODE_FIELDS.test(line));
  return cut((fields.length > 1 ? fields : lines).join('\n').replaceAll(/^…+|…+$/gm, '').trim());
}

/** What an answer means; empty where it says so itself. @param {Line} line @param {string} printed @returns {Meaning} */
export function meaningOf({ run }, printed) {
  const answer = answerOf(printed);
  const says = (/** @type {string} */ name, /** @type {any[]} */ ...given) => ({ text: t(name, ...given), wrong: false });
  const [, redisCommand = ''] = /redis-cli(?: -h \S+)?(?: -p \S+)? ([a-z]+)/.exec(run) ?? [];
  const kinds = /** @type {[boolean, () => Meaning][]} */ ([
    [/验库存并锁库存成功/.test(answer) || answer.startsWith('remaining'), () => says(/lock lost/.test(answer) ? 'meansSoldLost' : 'meansSold')],
    [/^sold/.test(answer), () => says(/lock lost/.test(answer) ? 'meansOrderedLost' : 'meansOrdered')],
    [/已经购买过|不允许重复下单/.test(answer), () => says('meansTwice')],
    [/库存不足/.test(answer), () => says('meansNoStock')],
    [/没有等到|获取锁失败/.test(answer) || (/%\{http_code\}/.test(run) && /^503$/.test(answer)), () => says('meansNotHad')],
    [/%\{http_code\}/.test(run) && /^200$/.test(answer), () => says('meansDone')], [/%\{http_code\}/.test(run) && /^409$/.test(answer), () => says('meansFenced')],
    [/429/.test(answer) && /^\s*\d+ \d{3}/m.test(answer), () => says('meansLimited')],
    [/ERROR 1213/.test(answer), () => says('means1213')], [/ERROR 1205/.test(answer), () => says('means1205')],
    [/ERROR 1062/.test(answer), () => says('means1062')], [/ERROR 1290/.test(answer), () => says('means1290')],
    [/Node does not exist/.test(answer), () => says('meansNoNode')], [/^Node(Created|DataChanged|ChildrenChanged|Deleted)/m.test(answer), () => says('meansTold')],
    [/^Created/m.test(answer), () => says('meansCreated')], [/ephemeralOwner = 0x[1-9]/.test(answer), () => says('meansEphemeral')], [/\[aa, bb\d+\]/.test(answer), () => says('meansEphemeralGone')],
    [/is (killed|paused|cut)/.test(answer), () => says('meansStopped')], [/has lost its session/.test(answer), () => says('meansSessionEnded')], [/runs again|goes on|is mended/.test(answer), () => says('meansRunsAgain')],
    [/count\(\*\) from tb_voucher_order/.test(run) && /^\d+$/.test(answer), () => ({ text: t('meansOrders', Number(answer)), wrong: false })],
    [/select stock from tb_seckill_voucher/.test(run) && /^-?\d+$/.test(answer), () => ({ text: t('meansVouchersLeft', Number(answer)), wrong: Number(answer) < 0 })],
    [/select count from db_stock/.test(run) && /^\d+$/.test(answer), () => says('meansLeft', Number(answer))],
    [/show processlist|information_schema\.processlist/.test(run) && answer === '1', () => says('meansExecutes')], [/trx_rows_modified/.test(run) && answer === '1', () => says('meansUncommitted')],
    [/^\{"id":/.test(answer), () => says('meansOnSale')], [answer === 'imok' || answer === 'is healthy', () => says('meansAnswers')],
    [/space exceeded/.test(answer), () => says('meansFull')], [/etcdctl .*get by-hand/.test(run), () => says(answer === 'A' ? 'meansThereLock' : 'meansGoneLock')],
    [/^echo dump.*grep -c/.test(run) && /^\d+$/.test(answer), () => says('meansNodes', Number(answer))],
    [redisCommand === 'exists' && /^[01]$/.test(answer), () => says(`${answer === '1' ? 'meansThere' : 'meansGone'}${/exists \S*lock/i.test(run) ? 'Lock' : ''}`)],
    [redisCommand === 'setnx' && /^[01]$/.test(answer), () => says(answer === '1' ? 'meansLocked' : 'meansTaken')],
    [redisCommand === 'set' && / nx\b/.test(run) && /^(OK|)$/.test(answer), () => says(answer === 'OK' ? 'meansLocked' : 'meansTaken')],
    [redisCommand === 'del' && /^[01]$/.test(answer), () => says(answer === '1' ? 'meansDeleted' : 'meansNothingDeleted')],
    [redisCommand === 'ttl' && answer === '-1', () => says('meansNoLease')],
    [/^QUEUED/m.test(answer) && /^ERR/m.test(answer), () => says('meansOneFails')],
    [/MOVED/.test(answer), () => says('meansMoved')], [/non local key/.test(answer), () => says('meansNonLocal')], [/cluster_state:ok/.test(run) && answer === '1', () => says('meansClusterUp')],
    [redisCommand === 'eval' && /^ERR/.test(answer), () => says('meansScriptError')], [redisCommand === 'eval', () => says('meansReturned', answer.replaceAll('\n', t('stepComma')))],
    [/get demo2LockKey/.test(run) && /http-exec|^\d$/.test(answer), () => says(/wc -l/.test(run) ? 'meansValues' : 'meansThreadName', answer)],
    [/-lease-/.test(answer), () => says('meansLeaseNodes')],
    [/grep -ci x-instance/.test(run), () => says(answer === '0' ? 'meansByNginx' : 'meansByInstance')], [/x-instance.*wc -l/.test(run), () => says('meansInstances', answer)],
    [/grep -c 200$/.test(run), () => says('meansLetThrough', answer)], [/^\d+ and \d+ refused/.test(answer), () => says('meansRefused', ...(answer.match(/\d+/g) ?? []))],
    [/^\d+ (?:200$|at once)/.test(answer), () => says('meansLetThrough', answer.split(' ')[0])], [/200…503/.test(answer), () => says('meansSomeRefused')],
    [/main one now/.test(answer), () => says('meansPromoted')], [/free on the new one/.test(answer), () => says('meansLocksGone')], [/replicas had are there/.test(answer), () => says('meansLocksThere')],
    [/^count \d+/.test(answer), () => says('meansLeft', Number(answer.split(' ')[1]))], [/atomic\/get/.test(run), () => says('meansCounted', /\d+$/.exec(answer)?.[0])],
    [/TIMEFORMAT/.test(run), () => says('meansTook')], [/not exceeded by/.test(answer), () => says('meansPercentile')], [answer === 'in turn', () => says('meansInTurn')], [/disorder/.test(answer), () => says('meansOvertaken')],
    [/row_count\(\)/.test(run) && /^0\b/.test(answer), () => says('meansNoRow')], [/start transaction; select/.test(run) && /^(\S+)\n\1$/.test(answer), () => says('meansSameRead')],
  ]);
  return kinds.find(([is]) => is)?.[1]() ?? { text: '', wrong: false };
}
