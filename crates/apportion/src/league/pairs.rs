//! A league of pairs: each service next to each other on one link.

use std::fmt::Display;
use std::path::PathBuf;

use apportion_core::system::Catalog;
use apportion_core::units::{Rate, Span};
use apportion_report::Folder;
use apportion_report::pairs::{Grid, Meeting, Service};
use apportion_scenario::Estimate;
use toml::{Table, Value};

use super::error::LeagueError;
use super::situation::Situation;
use super::{Board, League, LeagueResults, Plan, discipline, option, service};
use crate::builders::builders;
use crate::cache::Cache;
use crate::cancel::{Cancel, Progress};
use crate::rows::PairRow;
use crate::scenario::Scenario;

/// The queue of the protocol: four bandwidth-delay products of a round-trip time of 50 ms, without management.
const DROP_TAIL: &str = "{ kind = \"fifo\", limit = \"200ms\" }";
/// The rates of the protocol.
const RATES: [Rate; 2] = [Rate::from_mbit(8), Rate::from_mbit(50)];
/// Half of the round-trip time of the protocol.
const DELAY: &str = "25ms";
/// The default length of a trial. Chosen: the protocol has ten minutes, for services on the Internet.
const LENGTH: Span = Span::from_secs(120);

/// A league of pairs, after Prudentia (SIGCOMM 2024): each [service](crate::services()) meets each other on one link.
///
/// The link has a round-trip time of 50 ms. Of each trial the middle six tenths count.
///
/// ```
/// let results = apportion::Pairs::new()
///     .services(["cubic", "flood"])
///     .rates([apportion::units::Rate::from_mbit(8)])
///     .length(apportion::units::Span::from_secs(20))
///     .seeds(1)
///     .run()?;
/// let next_to_a_flood = results.pairs().grids[0].cell(1, 0).unwrap().score[1];
/// assert!(next_to_a_flood < 0.1);
/// # Ok::<(), apportion::LeagueError>(())
/// ```
#[must_use]
pub struct Pairs<'a> {
    league: League<'a>,
    services: Vec<String>,
    rates: Vec<Rate>,
    length: Span,
}

impl Default for Pairs<'_> {
    fn default() -> Self {
        Self::new()
    }
}

builders! {
    Pairs (league):
    /// Sets the number of trials of each pair, each with its own seed. Default: 10.
    seeds,
    /// Sets the number of concurrent simulations, as in [a run](crate::Run::jobs).
    jobs,
    /// Sets a token that ends the league, without a result.
    cancel,
    /// Sets a callback after each simulation, as in a [league](League::progress).
    progress,
    /// Sets the folder in which the results get a folder of their own, `folder/1` for the first, with
    /// `pairs.html`, `pairs.csv` and `pairs.parquet`. Default: none, nothing is written.
    folder,
    /// Sets the cache, as in [a run](crate::Run::cache).
    cache,
    /// Sets whether to run even if the [estimate](Self::estimate) exceeds a day of CPU time or 2 GB of memory.
    /// Default: false.
    force,
}

impl Pairs<'_> {
    /// Creates a league of all pairs of built-in services on drop-tail links of 8 and 50 Mb/s, with ten trials
    /// of each pair, on all cores; nothing is written.
    pub fn new() -> Self {
        Self {
            league: League::new().disciplines([DROP_TAIL]).phase_check(false).seeds(10),
            services: Vec::new(),
            rates: RATES.to_vec(),
            length: LENGTH,
        }
    }

    /// Sets the services: names of [services](crate::services), or paths of files, or of folders of files, with flows that have no
    /// ends. Paths in these files are relative to the working directory. Default: all built-in ones.
    pub fn services<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.services = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the rates of the link. Default: 8 and 50 Mb/s.
    pub fn rates(mut self, rates: impl IntoIterator<Item = Rate>) -> Self {
        self.rates = rates.into_iter().collect();
        self
    }

    /// Sets the length of a trial; its first fifth is warm-up, and its last fifth, which does not count, is not
    /// simulated. Default: 120 s; the protocol has 600 s.
    pub const fn length(mut self, length: Span) -> Self {
        self.length = length;
        self
    }

    /// Sets the disciplines, as in a [league](League::disciplines). Default: a FIFO of four bandwidth-delay
    /// products.
    pub fn disciplines<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.league = self.league.disciplines(names);
        self
    }

    /// Sets the catalogue in which names of disciplines are looked up.
    pub fn catalog(mut self, catalog: &Catalog) -> Self {
        self.league = self.league.catalog(catalog);
        self
    }

    /// Estimates the cost of all simulations.
    ///
    /// # Errors
    /// If a name is unknown, a service is invalid, or a discipline cannot run.
    pub fn estimate(&self) -> Result<Estimate, LeagueError> {
        Ok(self.league.size_of(&self.plan()?.1))
    }

    /// Returns the scenarios of all simulations, as for a [league](League::scenarios).
    ///
    /// # Errors
    /// As for [`estimate`](Self::estimate).
    pub fn scenarios(&self) -> Result<Vec<Scenario>, LeagueError> {
        Ok(self.plan()?.1.runs().cloned().collect())
    }

    /// Returns the number of simulations.
    ///
    /// # Errors
    /// As for [`estimate`](Self::estimate).
    pub fn simulations(&self) -> Result<usize, LeagueError> {
        Ok(self.league.simulations_of(&self.plan()?.1))
    }

    /// Runs all pairs.
    ///
    /// # Errors
    /// As a [league](League::run), and if a service is unknown or invalid.
    pub fn run(&self) -> Result<PairsResults, LeagueError> {
        let (services, plan) = self.plan()?;
        let folder = self.league.start(&plan)?;
        let mut meetings: Vec<Vec<Meeting>> = vec![Vec::new(); plan.boards.len()];
        let played = self.league.play(&plan.boards, |at, results| {
            meetings[at] = results.points().iter().map(Meeting::of).collect();
            Ok(())
        })?;
        let grids = self.grids(services.len(), &plan, &meetings);
        for grid in &grids {
            if let Some(silent) = grid.alone_mbps.iter().position(|alone| *alone <= 0.0) {
                let name = services[silent].name.clone();
                let cause = format!("alone on {} Mb/s it gets nothing in the measured part", grid.rate_mbps);
                return Err(LeagueError::Service { name, cause });
            }
        }
        let pairs = apportion_report::pairs::Pairs {
            seeds: self.league.seeds,
            measured_s: self.length.as_secs_f64() * 0.6,
            grids,
            services,
            command: self.command(),
            commit: crate::provenance::COMMIT.to_owned(),
            versions: crate::provenance::versions(false),
        };
        let publish = |folder: Folder| {
            folder.table(&pairs.rows())?;
            folder.file("pairs.html", pairs.page())?;
            folder.publish()
        };
        let folder = folder.map(publish).transpose()?;
        Ok(PairsResults { of: pairs, folder, played })
    }

    /// The grids, by rate, then discipline, from the meetings of each board, by discipline.
    fn grids(&self, count: usize, plan: &Plan, meetings: &[Vec<Meeting>]) -> Vec<Grid> {
        let per_rate = plan.boards.len() / self.rates.len();
        let mut grids = Vec::new();
        for (rate, meetings) in self.rates.iter().zip(meetings.chunks(per_rate)) {
            for (at, discipline) in plan.disciplines.iter().enumerate() {
                let alone: Vec<&Meeting> = meetings[..count].iter().map(|of| &of[at]).collect();
                // Pairs follow by incumbent, then by contender from the incumbent on.
                let place = |i: usize, j: usize| count + i * count - i * i.saturating_sub(1) / 2 + (j - i);
                let both = |i: usize, j: usize| &meetings[place(i, j)][at];
                grids.push(Grid::of(rate.as_mbit_f64(), discipline.name.clone(), &alone, both));
            }
        }
        grids
    }

    /// The services; and a board for each rate and service alone, then for each rate and pair.
    fn plan(&self) -> Result<(Vec<Service>, Plan), LeagueError> {
        let services = service::all(&self.services)?;
        let disciplines = discipline::all(&self.league.catalog, &self.league.disciplines)?;
        let mut boards = Vec::new();
        for rate in &self.rates {
            let alone = services.iter().map(|service| vec![service]);
            let pairs = services.iter().enumerate().flat_map(|(at, incumbent)| {
                services[at..].iter().map(move |contender| vec![incumbent, contender])
            });
            for sides in alone.chain(pairs) {
                let situation = self.situation(&sides, *rate)?;
                let board = Board::of(situation, &disciplines)?;
                let obstacle = board.obstacles.iter().zip(&disciplines).find_map(|(obstacle, discipline)| {
                    Some((obstacle.as_ref()?.clone(), discipline.name.clone()))
                });
                if let Some((cause, name)) = obstacle {
                    return Err(LeagueError::Discipline { name, cause });
                }
                boards.push(board);
            }
        }
        Ok((services, Plan { disciplines, boards }))
    }

    /// The link with one service or two.
    fn situation(&self, sides: &[&Service], rate: Rate) -> Result<Situation, LeagueError> {
        let mut flows = Table::new();
        for (side, service) in sides.iter().enumerate() {
            let refuse = |cause| LeagueError::Service { name: service.name.clone(), cause };
            flows.extend(service::flows(service, side).map_err(refuse)?);
        }
        let of = |entries: &[(&str, &dyn Display)]| {
            entries
                .iter()
                .map(|(key, value)| ((*key).to_owned(), value.to_string().into()))
                .collect::<Table>()
        };
        let name = sides.iter().map(|service| service.name.as_str()).collect::<Vec<_>>().join("-and-");
        let fifth = self.length.div(5);
        let (warm_up, end) = (fifth, self.length.saturating_sub(fifth));
        let mut scenario = of(&[("title", &name), ("stop", &end), ("measure_from", &warm_up)]);
        scenario.insert("seed".to_owned(), Value::Integer(1));
        let mut topology = of(&[("kind", &"dumbbell")]);
        topology.insert("pairs".to_owned(), Value::Integer(2));
        let bottleneck = of(&[("rate", &rate), ("delay", &DELAY), ("queue", &"fifo")]);
        topology.insert("bottleneck".to_owned(), bottleneck.into());
        scenario.insert("topology".to_owned(), topology.into());
        scenario.insert("flow".to_owned(), flows.into());
        let text = toml::to_string(&scenario).unwrap_or_default();
        let loaded = Scenario::from_text(text).map_err(|error| LeagueError::Service {
            name: sides.iter().map(|service| service.name.as_str()).collect::<Vec<_>>().join(", "),
            cause: error.to_string(),
        })?;
        super::situation::of_scenario(&name, &loaded, &self.league.catalog)
    }

    /// The command line for the same pairs.
    fn command(&self) -> String {
        format!(
            "apportion pairs{}{}{} --length {} --seeds {}",
            option("services", &self.services),
            option("disciplines", &self.league.disciplines),
            option("rates", &self.rates.iter().map(Rate::to_string).collect::<Vec<_>>()),
            self.length,
            self.league.seeds
        )
    }
}

/// The results of pairs.
pub type PairsResults = LeagueResults<apportion_report::pairs::Pairs>;

impl PairsResults {
    /// Returns the services and their grids.
    #[must_use]
    pub const fn pairs(&self) -> &apportion_report::pairs::Pairs {
        &self.of
    }

    /// Returns the grids as text for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        self.of.text()
    }

    /// Returns the pairs as one HTML page.
    #[must_use]
    pub fn page(&self) -> String {
        self.of.page()
    }

    /// Returns a row for each cell.
    #[must_use]
    pub fn rows(&self) -> Vec<PairRow> {
        self.of.rows()
    }
}
