/** The layouts of the races, and a run of one's own. */

import './layout.test.mjs';
import './live.test.mjs';
