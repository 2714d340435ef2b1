//! The results as Markdown.

use super::scene::{Costs, Kind, Library, Scene};
use oversell_lab::spread::Spread;
use std::{collections::BTreeMap, fmt::Display};

pub(crate) struct Figures {
    /// Holds in a second, one for each round.
    pub(crate) rates: BTreeMap<(Scene, Library), Vec<f64>>,
    pub(crate) costs: BTreeMap<(Scene, Library), Costs>,
}

/// How far apart the rates of the scripts alone may be in the rounds of one run.
const MAX_NOISE: f64 = 2.0;

/// A goal: what it is about, what is wanted, what was measured.
type Goal = (&'static str, &'static str, f64);

impl Figures {
    pub(crate) fn print(&self) {
        let base = &self.rates[&(Scene::BASE, Library::Bare)];
        let base = Spread::from_values(base.iter().copied());
        println!(
            "\nThe scripts alone: {:.0}/s ({:.0} to {:.0}). Rates as ratios to them, median (least to greatest) of the rounds:\n",
            base.median, base.min, base.max
        );
        if base.max > MAX_NOISE * base.min {
            println!("This machine did other work too: the ratios below are noise, and the counts of contenders higher.\n");
        }
        self.print_rows("scene", Scene::all(), |scene, library| {
            let base = &self.rates[&(Scene::BASE, Library::Bare)];
            let rates = self.rates.get(&(scene, library))?;
            let Spread { median, min, max, .. } = Spread::from_ratios(rates, base);
            Some(format!("{median:.3} ({min:.3} to {max:.3})"))
        });
        println!("\nRound trips for one acquire and release, and allocations:\n");
        self.print_rows("scene", Scene::counted(), |scene, library| {
            let costs = self.costs.get(&(scene, library))?;
            let allocations = costs.allocations.map_or(String::new(), |n| format!(", {n:.1}"));
            Some(format!("{:.2}{allocations}", costs.round_trips))
        });
        println!("\n| goal | wanted | seen |\n|---|---|---|");
        for (goal, wanted, seen) in self.goals() {
            println!("| {goal} | {wanted} | {seen:.2} |");
        }
    }

    fn print_rows(&self, title: &str, scenes: Vec<Scene>, cell: impl Fn(Scene, Library) -> Option<String>) {
        println!("| {title} | {} |", joined(Library::ALL));
        println!("|---|{}", "---|".repeat(Library::ALL.len()));
        for scene in scenes {
            let cells = Library::ALL.map(|library| cell(scene, library).unwrap_or_default());
            println!("| {scene} | {} |", joined(cells));
        }
    }

    fn median(&self, scene: Scene, library: Library) -> f64 {
        let rates = self.rates.get(&(scene, library));
        Spread::from_values(rates.into_iter().flatten().copied()).median
    }

    fn goals(&self) -> Vec<Goal> {
        let alone = self.costs[&(Scene::BASE, Library::Ours)];
        let least_over_rslock = |is_burst: bool| {
            let contended = Scene::all().into_iter().filter(|scene| match scene {
                Scene::Burst { kind, .. } => is_burst && *kind == Kind::Lock,
                Scene::Loop { kind, .. } => !is_burst && *kind == Kind::Lock,
                _ => false,
            });
            let over = contended.map(|scene| self.median(scene, Library::Ours) / self.median(scene, Library::Rslock));
            over.fold(f64::INFINITY, f64::min)
        };
        let slower = self.median(Scene::BASE, Library::Bare) / self.median(Scene::BASE, Library::Ours);
        vec![
            ("round trips, nobody else", "at most 2", alone.round_trips),
            ("time of the scripts alone, nobody else", "at most 1.1 times", slower),
            ("contenders at once: rslock's rate, the least", "at least 5 times", least_over_rslock(true)),
            ("contenders again and again: rslock's rate, the least", "at least 5 times", least_over_rslock(false)),
            ("allocations, nobody else, acquire and release", "at most 20", alone.allocations.unwrap_or(f64::NAN)),
        ]
    }
}

fn joined<T: Display>(cells: impl IntoIterator<Item = T>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|cell| cell.to_string()).collect();
    cells.join(" | ")
}
