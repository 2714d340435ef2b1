/** What goes wrong in a race. */

/** @typedef {import('./race.js').Race} Race */
/** @typedef {import('../timeline/events.js').Ending} Ending */

/** More was sold than left the shelf, or one user has two orders. @param {Ending | null | undefined} ending @param {Race} its */
export const isOversold = (ending, its) => (its.places_orders ? (ending?.sold ?? 0) > 1 : (ending?.sold ?? 0) > (ending?.gone ?? 0) && sellsStock(its));
/** @param {Race} its */
export const sellsStock = ({ ends }) => (ends.sold ?? 0) > 0 || (ends.gone ?? 0) > 0;

/** A flaw that ends as it must, or whatever oversells. @param {Ending | null | undefined} ending @param {Race} its @param {boolean} cured */
export const isWrong = (ending, its, cured) => isOversold(ending, its) || (!cured && ending?.as_meant === true);
