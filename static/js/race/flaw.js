/** What goes wrong in a race, and its name in the field. */

/** @typedef {import('./race.js').Race} Race */
/** @typedef {import('../timeline/model.js').Model} Model */
/** @typedef {import('../timeline/events.js').Ending} Ending */

/** Races of [002] about two orders of one user for one voucher. @param {Race} race */
export const isVoucherRace = ({ lesson }) => ['002.new-mutex', '002.cluster', '002.late-unlock'].includes(lesson);

/** More was sold than left the shelf, or one user has two orders. @param {Ending | null | undefined} ending @param {Race} its */
export const isOversold = (ending, its) => (isVoucherRace(its) ? (ending?.sold ?? 0) > 1 : (ending?.sold ?? 0) > (ending?.gone ?? 0) && sellsStock(its));
/** @param {Race} its */
export const sellsStock = ({ ends }) => (ends.sold ?? 0) > 0 || (ends.gone ?? 0) > 0;

/** What goes wrong without overselling: what the race declares, a piece that leaves the shelf twice, or that nobody gets on. @param {Race} its @returns {string} */
export function otherFlaw({ ends, cured_ends }) {
  const { sold = 0, gone = 0, inside = 0, anomaly } = ends;
  if (anomaly) return anomaly;
  if (gone > sold) return 'doubled';
  return !sold && inside > 0 && (cured_ends.sold ?? 0) > 0 ? 'stuck' : '';
}

/** @param {Ending | null | undefined} ending @param {Race} its @param {boolean} cured */
export const isWrong = (ending, its, cured) => isOversold(ending, its) || (!cured && ending?.as_meant === true && (otherFlaw(its) !== '' || isCrowded(its)));

/** More are inside than the cure lets in. @param {Race} its */
const isCrowded = (its) => !sellsStock(its) && (its.ends.inside ?? 0) > Math.max(1, its.cured_ends.inside ?? 1);

/** The anomalies in the flaw, by their names in the field. @param {Race} its @param {Model} model @returns {string[]} */
export function anomalies(its, model) {
  const names = [];
  if (model.arrows.some((arrow) => arrow.to === 'lock')) names.push('late-release');
  if (model.lanes.some((lane) => lane.carries.length)) names.push('lost-update');
  if (isVoucherRace(its)) names.push('check-then-act');
  const other = otherFlaw(its);
  if (other && !names.includes(other)) names.push(other);
  if (!names.length && isCrowded(its)) names.push(its.cured_ends.inside === 1 ? 'two-holders' : 'over-limit');
  return names;
}
