/** The class, and pages of one idea each. */

import './class.test.mjs';
import './mine.test.mjs';
import './limits.test.mjs';
