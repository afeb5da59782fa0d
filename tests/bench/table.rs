//! The table: what was measured, its goal, and whether it was reached.

use comfy_table::Table as Grid;

/// What a value has to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// At least so many times F (or so much, without a ratio).
    AtLeast(f64),
    /// At most so much.
    AtMost(f64),
    /// Shown only.
    Shown,
}

/// One line.
pub(crate) struct Line {
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
    /// To F, or to what the line is compared with. The goal is about this if it is there.
    pub(crate) ratio: Option<f64>,
    pub(crate) goal: Goal,
}

/// Every line so far.
#[derive(Default)]
pub(crate) struct Table(Vec<Line>);

impl Line {
    fn is_reached(&self) -> Option<bool> {
        let judged = self.ratio.unwrap_or(self.value);
        match self.goal {
            Goal::AtLeast(least) => Some(judged >= least),
            Goal::AtMost(most) => Some(judged <= most),
            Goal::Shown => None,
        }
    }
}

impl Table {
    /// Adds a line, and says it at once: a run takes minutes.
    pub(crate) fn add(&mut self, line: Line) {
        let ratio = line.ratio.map(|ratio| format!(" = {}", number(ratio))).unwrap_or_default();
        eprintln!("bench:   {}: {} {}{ratio}", line.what, number(line.value), line.unit);
        self.0.push(line);
    }

    pub(crate) fn misses(&self) -> usize {
        self.0.iter().filter(|line| line.is_reached() == Some(false)).count()
    }

    pub(crate) fn print(&self) {
        let mut grid = Grid::new();
        grid.set_header(["what", "value", "unit", "ratio", "goal", "verdict"]);
        for line in &self.0 {
            let goal = match line.goal {
                Goal::AtLeast(least) => format!("≥ {}", number(least)),
                Goal::AtMost(most) => format!("≤ {}", number(most)),
                Goal::Shown => String::new(),
            };
            let verdict = line.is_reached().map_or("", |is_reached| if is_reached { "reached" } else { "MISSED" });
            let ratio = line.ratio.map(number).unwrap_or_default();
            grid.add_row([line.what.clone(), number(line.value), line.unit.into(), ratio, goal, verdict.into()]);
        }
        println!("{grid}");
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        medium if medium >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
