//! Pairs of services as one self-contained HTML page without scripts.

use std::fmt::Write as _;

use super::{Cell, Grid, Pairs, Service};
use crate::html::{escape, table};
use crate::page::{explorable, reproduce};
use crate::statistics::number;

const STYLE: &str = include_str!("style.css");

impl Pairs {
    /// The pairs as HTML.
    #[must_use]
    pub fn page(&self) -> String {
        let mut out = self.header();
        for grid in &self.grids {
            out.push_str(&self.section(grid));
        }
        out.push_str(&self.services());
        out.push_str(&reproduce(&self.command, &self.commit, &self.versions, MEANING));
        explorable("Pairs of services", STYLE, &out, "")
    }

    fn header(&self) -> String {
        let seeds = if self.seeds == 1 { "1 seed".to_owned() } else { format!("{} seeds", self.seeds) };
        let mut out = format!(
            "<h1>Pairs of services</h1>\n<p class=\"sub\">{} services · {} s measured · {seeds}</p>\n\
             <p>Each service meets each other on one link with a round-trip time of 50 ms. A cell has the throughput of the incumbent over its \
             max-min fair share next to the contender: below 1 the incumbent loses. The protocol is that of Prudentia (SIGCOMM 2024).</p>\n",
            self.services.len(),
            number(self.measured_s),
        );
        for (discipline, tau) in self.rank_correlations() {
            let _ = writeln!(
                out,
                "<p>{}: the orders of contenders at the first and at the last rate have Kendall's τ = {tau:.2}.</p>",
                escape(discipline)
            );
        }
        out
    }

    fn section(&self, grid: &Grid) -> String {
        let heading = escape(&self.heading(grid));
        let mut out = format!("<h2>{heading}</h2>\n<p>{}</p>\n", escape(&self.summary(grid)));
        out.push_str(
            "<div class=\"scroll\"><table class=\"pairs\">\n<thead><tr><th scope=\"col\">Contender</th>",
        );
        for service in &self.services {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(&service.name));
        }
        out.push_str("<th scope=\"col\">Leaves others</th></tr></thead>\n<tbody>\n");
        for (contender, service) in self.services.iter().enumerate() {
            let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(&service.name));
            for cell in &grid.cells[contender] {
                out.push_str(&show(cell));
            }
            let _ = writeln!(out, "<td>{:.2}</td></tr>", grid.contentiousness(contender));
        }
        let mut row = |name: &str, of: &dyn Fn(usize) -> String| {
            let cells = (0..self.services.len()).map(|at| format!("<td>{}</td>", of(at)));
            let _ = writeln!(
                out,
                "<tr class=\"margin\"><th scope=\"row\">{name}</th>{}<td></td></tr>",
                cells.collect::<String>()
            );
        };
        row("Gets next to others", &|at| format!("{:.2}", grid.sensitivity(at)));
        row("Alone, Mb/s", &|at| number(grid.alone_mbps[at]));
        out.push_str("</tbody>\n</table></div>\n");
        if let [head, rows @ ..] = &self.times(grid)[..]
            && head.len() > 1
        {
            let _ = write!(out, "<h3>Median time of pages and files, s</h3>\n{}", table(head, rows));
        }
        out
    }

    fn services(&self) -> String {
        let of = |service: &Service| {
            format!(
                "<details><summary>{}: {}</summary>\n<pre>{}</pre></details>\n",
                escape(&service.name),
                escape(&service.about),
                escape(&service.flows)
            )
        };
        let all: String = self.services.iter().map(of).collect();
        format!("<h2 id=\"services\">Services</h2>\n{all}")
    }
}

const MEANING: &str = "<h2 id=\"meaning\">What the numbers mean</h2>
<dl>
<dt>Score</dt><dd>Throughput of the incumbent over its fair share: median over seeds, with quartiles below. Throughput is that of all flows
of the service, headers included.</dd>
<dt>Fair share</dt><dd>min(d, max(C/2, C - e)) with the rate C of the link, and with d and e, what incumbent and contender get alone.</dd>
<dt>Leaves others</dt><dd>Mean score of the others next to this contender, called contentiousness.</dd>
<dt>Gets next to others</dt><dd>Mean score of this incumbent next to the others, called sensitivity.</dd>
<dt>Median time of pages and files</dt><dd>From the start of a page or file to its last byte: median within a run, then over seeds. Only
those that end within the measured part count.</dd>
<dt>ms</dt><dd>95th percentile of the sojourn time at the link, median over seeds.</dd>
</dl>
";

/// A cell of the grid, coloured by its score.
fn show(cell: &Cell) -> String {
    let [first, score, third] = cell.score;
    let spread = match cell.seeds {
        1 => String::new(),
        _ => format!("<small>{first:.2}–{third:.2}</small>"),
    };
    format!(
        "<td class=\"{}\" title=\"{} of {} Mb/s\">{score:.2}{spread}<small>{} ms</small></td>",
        colour(score),
        number(cell.throughput_mbps),
        number(cell.fair_mbps),
        number(cell.queue_delay_p95_ms)
    )
}

/// The class of a score: `l4` to `l1` for losses, `w1` to `w4` for gains, by the ratio.
fn colour(score: f64) -> &'static str {
    const BELOW: [(f64, &str); 4] = [(0.25, "l4"), (0.5, "l3"), (0.75, "l2"), (0.9, "l1")];
    const ABOVE: [(f64, &str); 4] = [(1.75, "w4"), (1.5, "w3"), (1.25, "w2"), (1.1, "w1")];
    let below = BELOW.iter().find(|(bound, _)| score < *bound);
    let above = ABOVE.iter().find(|(bound, _)| score > *bound);
    below.or(above).map_or("fair", |(_, class)| class)
}
