/** The scheduler, what the races send, and the pages of figures and words. */

import './schedule.test.mjs';
import './sent.test.mjs';
import './course-figures.test.mjs';
import './glossary.test.mjs';
import './reasons.test.mjs';
import './errata.test.mjs';
