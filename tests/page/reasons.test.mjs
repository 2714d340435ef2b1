/** Each reason that the service can give is said in Chinese on the Chinese page: the list of reasons is taken from the service's own source. */

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { loadReasons } from '../../static/js/words/load-reasons.js';
import { reasonText } from '../../static/js/words/reasons.js';

await loadReasons();

const ROOT = new URL('../../', import.meta.url);

/** Where a reason begins in the source, by the folder or file: all texts from there to the end of the bracket or of the statement are reasons. @type {[string, RegExp][]} */
const PLACES = [
  ['src/error', /#\[error\(/g],
  ['lock/src/error.rs', /#\[error\(/g],
  ['lock/src/mysql/failure.rs', /#\[error\(/g],
  ...['redis', 'zk', 'etcd', 'mysql'].map((server) => /** @type {[string, RegExp]} */ ([`lock/src/${server}`, /\b(?:[Uu]navailable|refused)\(/g])),
  ['lab/src/clients/http_client.rs', /#\[error\(/g],
  ['src/error', /\bfn why_refused\b[^{]*(?=\{)|^(?:pub\S* )?const \w+: &str = /gm],
  ['src/replay', /\bError::replay\(|\bpoll_until\(/g],
  ...['ctx.rs', 'replay', 'section', 'stock', 'seckill', 'classroom', 'own_lock'].map((place) => /** @type {[string, RegExp]} */ ([`src/${place}`, /\b(?:[Uu]navailable|Internal|no_answer|NoId)\(/g])),
  ...['engine', 'link', 'run', 'stock_api'].map((file) => /** @type {[string, RegExp]} */ ([`src/load/${file}.rs`, /\bunusable!\(/g])),
  ['src/load/plan.rs', /\bErr\(/g],
  ['src/http/runs', /\bfailed\(/g],
  ['src/http/queue.rs', /\bErr\(/g],
  ['src/own_lock/sandbox.rs', /\bErr\(|\bok_or\(/g],
  ['src/own_lock/script.rs', /\brule: |\bgarde::Error::new\(/g],
  ['src/http', /\bbad_input\(|\blet rule = /g],
];

/** A text of Rust, or a comment, or a sign of its own. */
const TOKEN = /"((?:[^"\\]|\\[^])*)"|\/\/.*|'(?:[^'\\]|\\.)'|[()[\]{};]/g;

/** The texts of the source from `at` to the end of the bracket or of the statement. @param {string} source @param {number} at */
function textsFrom(source, at) {
  const texts = [];
  let depth = 0;
  TOKEN.lastIndex = at;
  for (let found = TOKEN.exec(source); found; found = TOKEN.exec(source)) {
    const [token, text] = found;
    if (text != null) texts.push(text.replace(/\\\n\s*/g, '').replaceAll('\\"', '"').replaceAll('\\\\', '\\'));
    else if ('([{'.includes(token)) depth += 1;
    else if (')]}'.includes(token)) depth -= 1;
    if (depth < 0 || (depth === 0 && ')]};'.includes(token))) break;
  }
  return texts;
}

/** The source without its tests. @param {string} path */
const read = (path) => readFileSync(new URL(path, ROOT), 'utf8').split(/^#\[cfg\(test\)\]\nmod \w+ \{/m)[0];

/** The Rust files at this place or below it. @param {string} place @returns {string[]} */
const filesOf = (place) => (place.endsWith('.rs') ? [place]
  : readdirSync(new URL(place, ROOT), { recursive: true }).map((name) => `${place}/${name}`).filter((path) => /\.rs$/.test(path) && !/(?:^|\/)tests?(?:\/|\.rs$)/.test(path)));

/** What the service may write in place of a name. @param {string} name */
const sampleOf = (name) => (/^(?:reason|why|error)$/.test(name) ? 'Connection refused (os error 111)' : /^(?:server|Server)$/.test(name) ? 'redis' : '7');

/** The reasons in the source, each filled with samples, in English. */
function reasons() {
  const found = new Map();
  for (const [place, begins] of PLACES) {
    for (const path of filesOf(place)) {
      const source = read(path);
      for (const { index, 0: begin } of source.matchAll(begins)) {
        for (const text of textsFrom(source, index + begin.length)) {
          // A single word is a name; Chinese is for the page as it is.
          if (/[a-z]{2,}\W+[a-z]{2,}/.test(text.replace(/\{[^{}]*\}/g, '')) && !/\p{Script=Han}/u.test(text)) found.set(text.replace(/\{([^{}:]*)(?::[^{}]*)?\}/g, (_, name) => sampleOf(name)), path);
        }
      }
    }
  }
  return found;
}

/** Whether a Chinese text is all Chinese, but for names, commands and values. @param {string} text */
const isChinese = (text) => /\p{Script=Han}/u.test(text) && !/\b[a-z]{2,}(?: [a-z]{2,}){2,}/.test(text);

describe('a reason of the service', () => {
  it('is said in Chinese on the Chinese page', () => {
    const all = reasons();
    assert.ok(all.size > 80, `${all.size} reasons`);
    assert.deepEqual([...all].filter(([reason]) => !isChinese(reasonText('zh', reason))).map(([reason, path]) => `${path}: ${reason}`), []);
  });

  it('is said with what it names, and without the words of a server’s client that nobody has translated', () => {
    for (const [reason, chinese] of [
      ['the replay left its script: it took longer than 90 s', '重演没有按剧本走：超过 90 秒还没有演完'],
      ['the replay left its script: pause 8100: the lab is gone', '重演没有按剧本走：oversell lab fault pause 8100 没有做成'],
      ['the instance at http://127.0.0.1:8100 did not play its actor: Connection refused (os error 111)', '实例 http://127.0.0.1:8100 没有应答：连接被拒绝'],
      ['redis is not available: 2 of 5 nodes answered, 3 needed', 'redis 不可用：5 个节点只有 2 个应答，至少要 3 个'],
      ['mysql is not available: expected to read 4 bytes, got 0 bytes', 'mysql 不可用'],
      ['redis refuses this: it is full (maxmemory) (OOM command not allowed)', 'redis 拒绝了：内存满了（maxmemory）'],
      ['mysql connection pool was not acquired within 3000 ms', '3000 ms 内没有等到 mysql 的连接'],
      ['renew: a comment ends with its line', '注释只能写到行尾'],
      ['1205 (HY000): Lock wait timeout exceeded; try restarting transaction', 'MySQL 错误 1205（HY000）'],
      ['greater than 60000', '不能大于 60000'],
    ]) {
      assert.equal(reasonText('zh', reason), chinese);
      assert.equal(reasonText('en', reason), reason);
    }
  });

  it('has its twin: what nobody has translated is seen', () => {
    assert.ok(!isChinese(reasonText('zh', 'there is something new')));
    assert.deepEqual(textsFrom('Error::replay(format!(\n"{} has \\\n   gone ; (\\"so\\")", "two" // "three"\n)); "four"', 14), ['{} has gone ; ("so")', 'two']);
  });
});
