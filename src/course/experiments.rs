//! The experiments that several lessons share: a load that oversells or does not, and two that are compared.

use super::{Cluster, NoVerdict, Ratio, Says, Seen, Side, Target, Words};
use crate::bilingual::Bilingual;
use crate::load::{Row, terminal::rate, verdict::Verdict as Sold};

/// The course's load, 100 × 50: the claim is that it oversells.
pub(super) async fn oversells(
    on: &Cluster,
    strategy: &str,
    target: Target,
) -> Result<Seen, NoVerdict> {
    let row = on.load(strategy, target).await?;
    Ok(Seen::holds(row.verdict == Sold::Oversold, sale(&row)).sales([&row]))
}

/// The course's load: the claim is that not one piece too many is sold, on each of these targets.
pub(super) async fn exact(
    on: &Cluster,
    strategy: &str,
    targets: &[Target],
) -> Result<Seen, NoVerdict> {
    let mut rows = Vec::new();
    for target in targets {
        rows.push(on.load(strategy, *target).await?);
    }
    Ok(Seen::holds(
        rows.iter().all(|row| row.verdict == Sold::Exact),
        sales(&rows),
    )
    .sales(&rows))
}

/// Two rates, in pairs.
pub(super) async fn compared(
    on: &Cluster,
    first: Side,
    second: Side,
    says: Says,
) -> Result<Seen, NoVerdict> {
    let ratio = on.paired(first, second, says).await?;
    Ok(Seen::holds(ratio.holds(), words(&ratio)).ratios([ratio]))
}

/// The same load from 10 connections and from 100: the claim is that from more there are more retries for each piece.
pub(super) async fn retries_grow(on: &Cluster, strategy: &'static str) -> Result<Seen, NoVerdict> {
    let mut rows = Vec::new();
    for threads in [10, 100] {
        let mut plan = on.plan(strategy, Target::One);
        (plan.threads, plan.loops) = (threads, 2000 / threads);
        rows.push(on.send(plan).await?);
    }
    let retries: Vec<_> = rows
        .iter()
        .map(|row| row.retries_per_sold.unwrap_or(0.0))
        .collect();
    let words = Words::new(
        format!(
            "每卖一件，10 个线程重试 {:.2} 次，100 个线程重试 {:.2} 次。",
            retries[0], retries[1]
        ),
        format!(
            "Retries for each piece: {:.2} from 10 threads, {:.2} from 100.",
            retries[0], retries[1]
        ),
    );
    Ok(Seen::holds(retries[1] > retries[0], words)
        .sales(&rows)
        .value("retries_each", retries))
}

/// `mutex 三台：卖出 5000 件，少了 4321 件，多卖 679 件。`
pub(super) fn sale(row: &Row) -> Words {
    let (sold, gone, over) = (row.sold, row.gone(), row.oversold);
    let Bilingual { zh, en } = if row.target == Target::One.name() {
        Target::One
    } else {
        Target::Three
    }
    .words();
    let errors = row.errors + row.unknown;
    let (mut more_zh, mut more_en) = (format!("多卖 {over} 件"), format!("{over} oversold"));
    if errors > 0 {
        more_zh += &format!("，{errors} 个请求出错");
        more_en += &format!(", {errors} requests failed");
    }
    Words::new(
        format!(
            "{}，{zh}：卖出 {sold} 件，少了 {gone} 件，{more_zh}。",
            row.strategy
        ),
        format!(
            "{} on {en}: {sold} sold, {gone} gone, {more_en}.",
            row.strategy
        ),
    )
}

/// The same for several.
pub(super) fn sales(rows: &[Row]) -> Words {
    let each: Vec<_> = rows.iter().map(sale).collect();
    let join = |of: fn(&Words) -> &str, by: &str| each.iter().map(of).collect::<Vec<_>>().join(by);
    Words::new(join(|w| &w.zh, ""), join(|w| &w.en, " "))
}

/// A ratio in words: how much faster the first is, how far the rounds lie apart, and whether what is said of it is noise.
pub(super) fn words(ratio: &Ratio) -> Words {
    let Ratio {
        first,
        second,
        ratio: spread,
        ..
    } = ratio;
    let [first_name, second_name] = ratio.names();
    let (one, other) = (rate(first.per_sec.median), rate(second.per_sec.median));
    let (median, min, max, rounds) = (spread.median, spread.min, spread.max, spread.rounds);
    let (noise_zh, noise_en) = match ratio.is_noise() {
        true => (
            "；各轮并不一致，这个结论在误差之内",
            "; the rounds do not agree: this is within noise",
        ),
        false => ("", ""),
    };
    Words::new(
        format!(
            "{} 每秒 {one}，{} 每秒 {other}：{median:.2} 倍（{rounds} 轮，{min:.2} 到 {max:.2}）{noise_zh}。",
            first_name.zh, second_name.zh
        ),
        format!(
            "{} {one}/s, {} {other}/s: a ratio of {median:.2} ({rounds} rounds, {min:.2} to {max:.2}){noise_en}.",
            first_name.en, second_name.en
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{course::Rated, load::spread::Spread};

    fn ratio(rounds: [f64; 3], says: Says) -> Ratio {
        let rated = |strategy, rate| Rated {
            side: Side::of(strategy),
            per_sec: Spread::of([rate]),
        };
        Ratio {
            first: rated("a", 30.0),
            second: rated("b", 20.0),
            ratio: Spread::of(rounds),
            says,
        }
    }

    #[test]
    fn what_is_said_of_two_rates_holds_by_the_median() {
        let holds = |rounds, says| ratio(rounds, says).holds();
        let twice = [1.9, 2.5, 2.6];
        assert!(
            holds(twice, Says::Faster)
                && !holds(twice, Says::Alike)
                && holds(twice, Says::Between(2.0, 3.0))
        );
        assert!(!holds([0.5, 0.9, 1.5], Says::Faster) && holds([0.5, 0.9, 1.5], Says::Alike));
    }

    #[test]
    fn rounds_that_do_not_agree_are_called_noise() {
        let noise = |rounds, says| words(&ratio(rounds, says)).en.contains("noise");
        assert!(noise([0.9, 1.1, 1.2], Says::Faster) && !noise([1.1, 1.2, 1.3], Says::Faster));
        assert!(noise([0.49, 0.52, 0.6], Says::Alike) && !noise([0.9, 1.1, 1.2], Says::Alike));
    }
}
