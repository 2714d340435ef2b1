mod by_hand;
mod verdicts;
