/** The scheduler, and the small pages. */

import './schedule.test.mjs';
import './course-figures.test.mjs';
import './limits.test.mjs';
import './glossary.test.mjs';
import './reasons.test.mjs';
import './errata.test.mjs';
