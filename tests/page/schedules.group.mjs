/** The scheduler. */

import './schedule.test.mjs';
