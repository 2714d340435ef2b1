//! One thing has one Chinese word: a word that was replaced does not come back.

use super::NOTHING;
use std::{fs, path::Path};

/// Where Chinese text stands; of `docs` and the README only the Chinese half.
const SEARCHED_PATHS: [&str; 9] = [
    "src",
    "lab/src",
    "course/src",
    "static",
    "docs",
    "templates",
    "course/templates",
    "jmeter",
    "README.zh-CN.md",
];

/// Each word that was replaced, and the word that stands in its place.
const REPLACED_WORDS: [(&str, &str); 80] = [
    ("重现", "复现"),
    ("说法", "论断"),
    ("在误差之内", "误差范围内"),
    ("换成解法", "修正后"),
    ("采用解法后", "修正后"),
    ("不加解法", "未修正"),
    ("少了 ", "库存减少"),
    ("同时在里面", "同时在临界区"),
    ("落空", "更新失败（影响 0 行）"),
    ("续满", "重置为完整的租约"),
    ("接着走", "继续执行"),
    ("走不动", "阻塞"),
    ("卖重", "重复售出"),
    ("没有回音", "没有应答"),
    ("搭法", "部署方案"),
    ("哨兵", "Sentinel"),
    ("副本", "从节点"),
    ("跟随者", "Follower"),
    ("领导者", "Leader"),
    ("栅栏令牌", "防护令牌"),
    ("管理令牌", "管理口令"),
    ("管理员口令", "管理口令"),
    ("续约", "续期"),
    ("主人", "持有者，或所有者"),
    ("名额", "许可，或排队位置"),
    ("货架", "库存"),
    ("无响应", "没有应答"),
    ("没有响应", "没有应答"),
    ("没有回应", "没有应答"),
    ("没有回答", "没有应答"),
    ("没有声音", "失联"),
    ("卖完了", "售罄"),
    ("还在里面", "还在临界区"),
    ("都在里面", "都在临界区"),
    ("正在里面", "正在临界区"),
    ("各在里面", "各在临界区"),
    ("条在里面", "条在临界区"),
    ("'在里面'", "在临界区"),
    ("毫秒在里面", "毫秒在临界区"),
    ("里面还是会有两个", "临界区里还是会有两个"),
    ("不是自己的锁解不了", "不能释放他人的锁"),
    ("问每个节点都有超时", "向每个节点加锁都设超时"),
    ("只通知答应了的", "只向加锁成功的节点释放"),
    ("就一直留到过期", "到过期才消失"),
    ("等一样久", "延迟相同"),
    ("又同时抢", "再次同时竞争"),
    ("每批只进", "同一时刻最多"),
    ("不多不少", "准确"),
    ("谁说得多", "maxLeases 设得大的一方"),
    ("都做完才离开", "全部完成后一起离开"),
    ("一次不少", "不丢失更新"),
    ("好几单", "重复下单"),
    ("谁也绕不过", "最终要靠"),
    ("才空出一个位", "才释放一个排队位置"),
    ("同时只有 20 个", "最多 20 个并发连接"),
    ("会算用了多久", "会计算加锁耗时"),
    ("不会当成拿到了", "视为失败"),
    ("行锁变成表锁", "锁住所有行，效果如同锁表"),
    ("认不出自己", "无法识别自己持有的锁"),
    ("又买一遍", "又扣减一次"),
    ("盖掉已经做成的事", "掩盖已完成的业务结果"),
    ("从头到尾只有", "始终只有"),
    ("里面有什么", "项目内容"),
    ("故意弄坏", "制造故障"),
    ("坏一台照样卖", "坏一台仍可用"),
    ("最初的十分钟", "十分钟上手"),
    ("## 界限", "不包含什么"),
    ("几个节点说定", "多节点一致的操作"),
    ("只收不答", "只接收不应答"),
    ("换来换去", "反复切换"),
    ("赶在别人醒来", "在其他等待者醒来"),
    ("没守住", "未兑现"),
    ("用话写出", "文字步骤"),
    ("要紧的代码", "关键代码"),
    ("白试的", "失败的尝试"),
    ("按得动", "可以操作"),
    ("一看便知", "一目了然"),
    ("| 想要", "目标"),
    ("| 见到", "实测"),
    ("服务器上重做", "服务器上复现"),
];

#[test]
fn no_replaced_chinese_word_comes_back() {
    let mut files = Vec::new();
    for place in SEARCHED_PATHS {
        collect_texts(Path::new(place), &mut files);
    }
    assert!(files.len() > 300, "{} files", files.len());
    let found: Vec<_> = files
        .iter()
        .flat_map(|(name, text)| find_replaced_words(name, text))
        .collect();
    assert_eq!(found, NOTHING);
}

/// The twin.
#[test]
fn a_replaced_chinese_word_is_seen() {
    assert_eq!(
        find_replaced_words("a.md", "重演。\n没有重现：由哨兵提升。").len(),
        2
    );
    assert_eq!(
        find_replaced_words("a.md", "未复现：由 Sentinel 提升。"),
        NOTHING
    );
}

/// The replaced words in this text, with their line.
fn find_replaced_words(name: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    lines
        .flat_map(|(n, line)| {
            let words = REPLACED_WORDS
                .iter()
                .filter(|(word, _)| line.contains(word));
            words.map(move |(word, better)| format!("{name}:{}: {word}; write {better}", n + 1))
        })
        .collect()
}

/// Adds each text at this place or below it, with its name, except this list and the English pages of docs.
fn collect_texts(place: &Path, found: &mut Vec<(String, String)>) {
    let name = place.to_str().expect("a name in UTF-8");
    if place.is_dir() {
        for entry in fs::read_dir(place).expect("a folder") {
            collect_texts(&entry.expect("an entry").path(), found);
        }
        return;
    }
    if name.starts_with("docs") && !name.ends_with(".zh-CN.md") || name == file!() {
        return;
    }
    // A picture is no text.
    if let Ok(text) = fs::read_to_string(place) {
        found.push((name.to_owned(), text));
    }
}
