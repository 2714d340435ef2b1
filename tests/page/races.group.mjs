/** The races, how they are drawn. */

import './race.test.mjs';
