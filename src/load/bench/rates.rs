//! What the rounds have measured, and the figures that it comes to.

use super::{
    FEW, course,
    figure::{Figure, Unit, median},
    waiters::Contended,
};

/// Rates per second, one for each round.
#[derive(Debug)]
pub(super) struct Rates {
    pub(super) update: Vec<f64>,
    pub(super) single_update: Vec<f64>,
    pub(super) transaction: Vec<f64>,
    pub(super) select_for_update: Vec<f64>,
    pub(super) version_cas: Vec<f64>,
    pub(super) redis_script: Vec<f64>,
    pub(super) redis_watch: Vec<f64>,
    pub(super) redis_lock: Contended,
    pub(super) zk_lock: Contended,
    /// For each of [`course::STAGES`], with [`FEW`] connections.
    pub(super) stages: [Vec<f64>; course::STAGES.len()],
    pub(super) file: Vec<f64>,
}

impl Rates {
    /// Of no round yet.
    pub(super) fn new() -> Self {
        Self {
            update: Vec::new(),
            single_update: Vec::new(),
            transaction: Vec::new(),
            select_for_update: Vec::new(),
            version_cas: Vec::new(),
            redis_script: Vec::new(),
            redis_watch: Vec::new(),
            redis_lock: Contended::new("redis-lock", "one client, nobody else", 0.9),
            zk_lock: Contended::new("zk-lock", "one client: create, section, delete", 0.8),
            stages: Default::default(),
            file: Vec::new(),
        }
    }

    /// All that the medians come to.
    pub(super) fn figures(&self) -> Vec<Figure> {
        let sql = "the same SQL without HTTP";
        let mut figures = vec![
            Figure::ratio("single-update", &self.single_update, sql, &self.update, 0.6),
            Figure::ratio("select-for-update", &self.select_for_update, sql, &self.transaction, 0.7),
            Figure::ratio("version-cas", &self.version_cas, "select-for-update", &self.select_for_update, 0.4),
            Figure::ratio("redis-watch", &self.redis_watch, "redis-script", &self.redis_script, 0.6),
        ];
        figures.extend(self.redis_lock.figures());
        figures.extend(self.zk_lock.figures());
        figures.push(Figure::compared(
            "zk-lock, 100 connections",
            self.zk_lock.rates(),
            "redis-lock",
            self.redis_lock.rates(),
        ));
        figures.extend(course::figures(FEW.0, |slug| {
            let stages = course::STAGES.iter().zip(&self.stages);
            stages.filter(|(stage, _)| **stage == slug).flat_map(|(_, rates)| rates.clone()).collect()
        }));
        figures.push(Figure::known("a static file through nginx", median(&self.file), Unit::PerSecond));
        figures
    }
}
