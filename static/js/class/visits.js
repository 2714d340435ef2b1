/**
 * The visits of all instances, from `GET /classroom/events`: who came, when it was inside, when it left, what was printed. An event that
 * comes twice counts once. Pure.
 */

/** @typedef {{t_us: number, instance: string, event: string, visit?: string, actor?: string, key?: string, value?: string}} ClassEvent */
/**
 * Times in microseconds. `entered`, `left`: null until then; `lost`: its instance went away.
 * @typedef {object} Visit
 * @property {string} id
 * @property {string} who empty without a name
 * @property {string} instance
 * @property {string} key
 * @property {string} route
 * @property {number} from
 * @property {number | null} entered
 * @property {number | null} left
 * @property {boolean} lost
 * @property {{at: number, n: number} | null} count the count that it read, and when
 * @property {string} member
 */
/** @typedef {{at: number, instance: string, visit: string, who: string, key: string, text: string}} Line */

const MAX_KEPT = 600;

export class Visits {
  /** @type {Map<string, Visit>} */
  #visits = new Map();
  /** @type {Line[]} */
  #lines = [];
  /** Whether each instance is up. @type {Map<string, boolean>} */
  instances = new Map();
  /** When all objects were last reset. */
  reset = 0;
  /** How far the browser's clock is ahead of the instances', at most; in microseconds. */
  clockAhead = Infinity;

  /** @param {ClassEvent} classEvent @param {number} now the browser's clock, in microseconds */
  record(classEvent, now) {
    this.clockAhead = Math.min(this.clockAhead, now - classEvent.t_us);
    const { event, instance, t_us: at, visit: id } = classEvent;
    if (event !== 'down') this.instances.set(instance, true);
    if (event === 'down') this.#markInstanceDown(instance, at);
    else if (event === 'reset') this.reset = Math.max(this.reset, at);
    else if (id) this.#recordVisit(id, classEvent);
  }

  /** @param {string} instance @param {number} at */
  #markInstanceDown(instance, at) {
    this.instances.set(instance, false);
    for (const visit of this.#visits.values()) {
      if (visit.instance === instance && visit.left == null) Object.assign(visit, { left: at, lost: true });
    }
  }

  /** @param {string} id @param {ClassEvent} told */
  #recordVisit(id, { event, instance, t_us: at, actor: who = '', key = '', value = '' }) {
    const visit = this.#visits.get(id);
    if (event === 'start') {
      // Its instance was only out of reach.
      if (visit?.lost) Object.assign(visit, { left: null, lost: false });
      if (!visit) this.#visits.set(id, { id, who, instance, key, route: value, from: at, entered: null, left: null, lost: false, count: null, member: '' });
      if (this.#visits.size > MAX_KEPT) this.#visits.delete(/** @type {string} */ (this.#visits.keys().next().value));
    } else if (event === 'said') {
      if (!this.#lines.some((line) => line.visit === id && line.at === at)) this.#lines = [...this.#lines, { at, instance, visit: id, who, key, text: value }].slice(-MAX_KEPT);
    } else if (!visit) {
      // Its start is no longer stored.
    } else if (event === 'locked') visit.entered ??= at;
    else if (event === 'count') visit.count = { at, n: Number(value) };
    else if (event === 'member') visit.member = value;
    else if (event === 'released' || event === 'failed') visit.left ??= at;
  }

  /** The visits of this object, sorted by arrival. @param {string} key @returns {Visit[]} */
  visitsOf(key) {
    return [...this.#visits.values()].filter((visit) => visit.key === key).sort((a, b) => a.from - b.from);
  }

  /** @param {string} key @returns {Line[]} */
  linesOf(key) {
    return this.#lines.filter((line) => line.key === key).sort((a, b) => a.at - b.at);
  }
}
