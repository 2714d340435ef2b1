//! Chapter 3: locks in ZooKeeper, from one node to Curator.

use super::{
    Chapter, Lesson, Run, Side,
    experiments::{Says, compared},
};
use crate::stock::Title;

pub(super) const CHAPTER: Chapter = Chapter {
    id: "3",
    title: Title { zh: "基于 ZooKeeper 的分布式锁", en: "Distributed locks with ZooKeeper" },
    lessons: &[SPINNING_ON_NUMBERED_NODES],
};

const SPINNING_ON_NUMBERED_NODES: Lesson = Lesson {
    id: "3.4.1",
    title: Title { zh: "排队再自旋", en: "Queue, and look again and again" },
    claim: Title {
        zh: "每个请求一个带序号的节点、每 20 毫秒再看一次：性能比 3.3 反而更弱",
        en: "A numbered node for each request, looked at every 20 ms: slower than the plain node of 3.3",
    },
    place: "000 §3.4.1",
    strategies: &["zk-ephemeral", "zk-sequential"],
    timing: true,
    run: Run::Experiment(|on| {
        Box::pin(compared(on, Side::of("zk-ephemeral"), Side::of("zk-sequential"), Says::Faster))
    }),
    ..Lesson::PLAIN
};
