mod by_hand;
mod statements;
mod verdicts;
