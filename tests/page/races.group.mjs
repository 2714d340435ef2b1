/** The races: how they are drawn, and how light they come. */

import './race.test.mjs';
import './layout.test.mjs';
import './light.test.mjs';
