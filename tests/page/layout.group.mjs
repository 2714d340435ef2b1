/** The layouts of the races, a run of one's own, and clients that are generated. */

import './clients.test.mjs';
import './layout.test.mjs';
import './live.test.mjs';
