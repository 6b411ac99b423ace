//! Users who load web pages: their requests, when they come and leave, and how long pages take.
//!
//! A page begins with its main object. When that has arrived, the user requests the embedded ones over up to
//! `parallel` connections, which are kept: each requests the next object when it has the last one. When all
//! have arrived the page is complete, and the user reads it. A request is a packet to the server, which opens
//! the connection if needed and sends the object. An unanswered request is repeated after a second, then
//! after two, and so on, as in TCP before its first round-trip measurement (RFC 6298 section 2.1).
//!
//! A user who comes takes a *seat*: its connections, and the state of a user. A user who leaves gives it to a
//! later one, so memory depends on the concurrent users, not on all users, and each new user costs the same.
//! The number of seats follows from when users come and leave, which does not depend on the network.
//!
//! All random numbers of a user come from a stream of its own, so users request the same pages on any
//! network.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Span, Time};
use apportion_scenario::model::{Flow, MAX_ARRIVALS, Web};

use super::short_flows::draw_size;
use super::timing::Carry;
use crate::connections::start;
use crate::outcome::Completion;

/// RFC 6298 sections 2.1 and 2.5: the first timeout, and the largest.
const FIRST_WAIT: Span = Span::from_secs(1);
const LONGEST_WAIT: Span = Span::from_secs(60);
/// The same guard as for short flows: a checked scenario is never cut short.
const GUARD: u64 = MAX_ARRIVALS as u64 / 100 * 101;

/// Times at which the users of a source come and leave.
#[derive(Clone, Debug)]
pub struct Arrivals {
    web: Arc<Web>,
    at: Time,
    carry: Carry,
    stop: Time,
    stream: Stream,
    count: u64,
}

/// A user, with the times when it comes and leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// Number of earlier users.
    number: u64,
    pub comes: Time,
    leaves: Time,
}

impl Arrivals {
    /// The arrivals of `flow`, whose source is `web`, in a run that ends at `end`.
    #[must_use]
    pub fn of(flow: &Flow, web: &Arc<Web>, end: Time, seed: u64) -> Self {
        Self {
            web: Arc::clone(web),
            at: start(flow, 0, seed),
            carry: Carry::default(),
            stop: flow.stop.map_or(end, |stop| stop.min(end)),
            stream: Stream::new(seed, &format!("flow.{}.users", flow.stream())),
            count: 0,
        }
    }

    /// The maximum of concurrent users. One that leaves as another comes counts with it.
    #[must_use]
    pub fn seats(self) -> u32 {
        let (mut there, mut most) = (BinaryHeap::new(), 0);
        for user in self {
            while there.peek().is_some_and(|&Reverse(leaves)| leaves < user.comes) {
                there.pop();
            }
            there.push(Reverse(user.leaves));
            most = most.max(there.len());
        }
        u32::try_from(most).unwrap_or(u32::MAX)
    }
}

impl Iterator for Arrivals {
    type Item = User;

    fn next(&mut self) -> Option<User> {
        let number = self.count;
        let user = match self.web.users() {
            None => (number == 0).then_some(User { number, comes: self.at, leaves: Time::MAX })?,
            Some(users) => {
                self.at += self.carry.whole(self.stream.exponential(1e9 / users.per_second));
                let life = self.stream.exponential(users.life.as_nanos() as f64);
                User { number, comes: self.at, leaves: self.at + Span::from_nanos(life as u64) }
            }
        };
        self.count += 1;
        (user.comes < self.stop && number < GUARD).then_some(user)
    }
}

/// An action for the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Send a request over this connection of the flow.
    Ask(u32),
    /// Call [`Users::wake`] for this connection at this time.
    Wake(u32, Time),
    /// Forget this connection and its packets in flight, because its user has left.
    Close(u32),
    /// Call [`Users::arrive`] at this time.
    Await(Time),
    /// Record a complete page.
    Loaded(Completion),
}

/// The users of one source.
#[derive(Debug)]
pub struct Users {
    web: Arc<Web>,
    /// Prefix of the name of a user's stream.
    name: String,
    seed: u64,
    arrivals: Arrivals,
    next: Option<User>,
    seats: Vec<Seat>,
    /// Free seats, the next one last.
    free: Vec<u32>,
    /// Connections, `parallel` for each seat.
    connections: Vec<Connection>,
    /// No page begins from this time on.
    stop: Time,
    /// Actions, in order.
    pub acts: Vec<Act>,
}

/// The state of a user.
#[derive(Debug)]
struct Seat {
    stream: Stream,
    leaves: Time,
    /// Time at which the user has read the page; none while a page loads.
    reads_until: Option<Time>,
    page: Page,
}

/// A page that is loading.
#[derive(Debug, Default)]
struct Page {
    start: Time,
    size: Bytes,
    /// The objects that are not requested yet, the next one last.
    left: Vec<Bytes>,
    /// Number of objects that were requested and have not arrived.
    missing: u32,
    is_main: bool,
}

/// The state of a connection.
#[derive(Clone, Debug, Default)]
struct Connection {
    /// Time at which the current object was requested, and its size; none if the connection is idle.
    asked: Option<(Time, Bytes)>,
    is_answered: bool,
    /// Time at which the request is repeated, and the present timeout.
    again: Option<(Time, Span)>,
    /// Bytes of the connection at which the last requested object is complete.
    end: u64,
}

impl Users {
    /// The users of `flow`, whose source is `web`, in a run that ends at `end`.
    #[must_use]
    pub fn new(flow: &Flow, web: &Arc<Web>, end: Time, seed: u64) -> Self {
        let arrivals = Arrivals::of(flow, web, end, seed);
        let stop = arrivals.stop;
        let seats = arrivals.clone().seats();
        let seat = |_| Seat {
            stream: Stream::new(seed, ""),
            leaves: Time::ZERO,
            reads_until: None,
            page: Page::default(),
        };
        let mut users = Self {
            web: Arc::clone(web),
            name: format!("flow.{}.user", flow.stream()),
            seed,
            arrivals,
            next: None,
            seats: (0..seats).map(seat).collect(),
            free: (0..seats).rev().collect(),
            connections: vec![Connection::default(); (seats * web.parallel) as usize],
            stop,
            acts: Vec::new(),
        };
        users.await_next();
        users
    }

    fn await_next(&mut self) {
        self.next = self.arrivals.next();
        self.acts.extend(self.next.map(|user| Act::Await(user.comes)));
    }

    /// Lets a user come at `now`, if one was due.
    pub fn arrive(&mut self, now: Time) {
        let Some(user) = self.next.take_if(|user| user.comes == now) else { return };
        // Seats were counted with the same draws.
        if let Some(place) = self.free.pop() {
            let seat = &mut self.seats[place as usize];
            seat.stream = Stream::new(self.seed, &format!("{}.{}", self.name, user.number));
            seat.leaves = user.leaves;
            seat.reads_until = None;
            if user.leaves < self.stop {
                self.acts.push(Act::Wake(place * self.web.parallel, user.leaves));
            }
            self.begin_page(now, place);
        }
        self.await_next();
    }

    fn begin_page(&mut self, now: Time, place: u32) {
        if now >= self.stop {
            return;
        }
        let (web, seat) = (&self.web, &mut self.seats[place as usize]);
        let main = draw_size(&web.main_size, &mut seat.stream);
        let count = web.objects.quantile(seat.stream.uniform());
        let page = &mut seat.page;
        (page.start, page.size, page.missing, page.is_main) = (now, Bytes::ZERO, 0, true);
        page.left.clear();
        page.left.extend((0..count).map(|_| draw_size(&web.object_size, &mut seat.stream)));
        page.left.push(main);
        seat.reads_until = None;
        self.ask(now, place * web.parallel);
    }

    /// Requests the next object of the page over an idle connection. Returns false if there is none.
    fn ask(&mut self, now: Time, connection: u32) -> bool {
        let page = &mut self.seats[(connection / self.web.parallel) as usize].page;
        let Some(size) = page.left.pop() else { return false };
        page.missing += 1;
        page.size += size;
        let state = &mut self.connections[connection as usize];
        state.asked = Some((now, size));
        state.is_answered = false;
        state.end += size.get();
        self.send(now, connection, FIRST_WAIT);
        true
    }

    fn send(&mut self, now: Time, connection: u32, wait: Span) {
        self.connections[connection as usize].again = Some((now + wait, wait));
        self.acts.push(Act::Ask(connection));
        self.acts.push(Act::Wake(connection, now + wait));
    }

    /// Handles a request at the server that was sent at `sent`. Returns the size of the object to send; none
    /// if the request came before, or its user has left.
    pub fn answer(&mut self, sent: Time, connection: u32) -> Option<Bytes> {
        let state = self.connections.get_mut(connection as usize)?;
        let (_, size) = state.asked.filter(|&(asked, _)| sent >= asked && !state.is_answered)?;
        state.is_answered = true;
        Some(size)
    }

    /// Handles bytes at the user's end of a connection, which has `bytes` in order at `now`.
    pub fn receive(&mut self, now: Time, connection: u32, bytes: u64) {
        let state = &mut self.connections[connection as usize];
        debug_assert!(bytes <= state.end, "a user has only what was asked for");
        if state.asked.is_none() || bytes < state.end {
            return;
        }
        (state.asked, state.again) = (None, None);
        let place = connection / self.web.parallel;
        let page = &mut self.seats[place as usize].page;
        page.missing -= 1;
        if std::mem::take(&mut page.is_main) {
            let first = place * self.web.parallel;
            for connection in first..first + self.web.parallel {
                if !self.ask(now, connection) {
                    break;
                }
            }
        } else {
            self.ask(now, connection);
        }
        let seat = &mut self.seats[place as usize];
        if seat.page.missing == 0 {
            let Page { start, size, .. } = seat.page;
            self.acts.push(Act::Loaded(Completion { start, took: now.since(start), size }));
            let think = seat.stream.exponential(self.web.think.as_nanos() as f64);
            let until = now + Span::from_nanos(think as u64);
            seat.reads_until = Some(until);
            if until < seat.leaves.min(self.stop) {
                self.acts.push(Act::Wake(place * self.web.parallel, until));
            }
        }
    }

    /// Handles the time of an [`Act::Wake`]. Does nothing if nothing is due any more.
    pub fn wake(&mut self, now: Time, connection: u32) {
        let place = connection / self.web.parallel;
        let Some(seat) = self.seats.get(place as usize) else { return };
        if connection.is_multiple_of(self.web.parallel) {
            if seat.leaves == now {
                return self.leave(place);
            }
            if seat.reads_until == Some(now) {
                return self.begin_page(now, place);
            }
        }
        let state = &mut self.connections[connection as usize];
        if let Some((_, wait)) = state.again.take_if(|&mut (at, _)| at == now)
            && !state.is_answered
        {
            self.send(now, connection, (wait * 2).min(LONGEST_WAIT));
        }
    }

    fn leave(&mut self, place: u32) {
        let first = place * self.web.parallel;
        for connection in first..first + self.web.parallel {
            self.connections[connection as usize] = Connection::default();
            self.acts.push(Act::Close(connection));
        }
        let seat = &mut self.seats[place as usize];
        // So that late events do not find the user.
        (seat.leaves, seat.reads_until) = (Time::ZERO, None);
        self.free.push(place);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use apportion_scenario::model::{Scenario, Source};

    use super::*;

    fn scenario(source: &str) -> Scenario {
        let text = format!(
            "seed = 1\nstop = \"5000s\"\nlink.l = {{ from = \"a\", to = \"b\", rate = \"1Mbit\", delay = \"1ms\" }}\n\
             flow.w = {{ from = \"a\", to = \"b\", source = {{ kind = \"web\", {source} }} }}\n"
        );
        let none = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
        apportion_scenario::load(&text, Path::new("x.toml"), &[], &none).unwrap().points.remove(0).scenario
    }

    fn users(scenario: &Scenario) -> Users {
        let flow = &scenario.flows[0];
        let Source::Web(web) = &flow.source else { panic!("{flow:?}") };
        Users::new(flow, web, scenario.stop, 1)
    }

    const WAKE: u32 = u32::MAX;
    const ARRIVE: u32 = u32::MAX - 1;

    /// A network in which each object arrives after `takes`; returns its actions, and the largest number of
    /// pending events.
    fn play(users: &mut Users, takes: Span, lost: &mut dyn FnMut() -> bool) -> (Vec<(Time, Act)>, usize) {
        let (mut events, mut most) = (BinaryHeap::new(), 0);
        let (mut done, mut received) = (Vec::new(), vec![0; users.connections.len()]);
        // How often a connection was closed: packets in flight then do not arrive.
        let mut lives = vec![0; users.connections.len()];
        let mut number = 0_u64;
        let mut now = Time::ZERO;
        loop {
            for act in std::mem::take(&mut users.acts) {
                number += 1;
                done.push((now, act));
                match act {
                    Act::Ask(_) if lost() => (),
                    Act::Ask(connection) => {
                        let size = users.answer(now, connection).map_or(0, Bytes::get);
                        received[connection as usize] += size;
                        events.push(Reverse((now + takes, number, lives[connection as usize], connection)));
                    }
                    Act::Wake(connection, at) => events.push(Reverse((at, number, WAKE, connection))),
                    Act::Await(at) => events.push(Reverse((at, number, ARRIVE, 0))),
                    Act::Close(connection) => {
                        received[connection as usize] = 0;
                        lives[connection as usize] += 1;
                    }
                    Act::Loaded(_) => (),
                }
            }
            most = most.max(events.len());
            let Some(Reverse((at, _, what, connection))) =
                events.pop().filter(|&Reverse((at, ..))| at < users.stop)
            else {
                return (done, most);
            };
            now = at;
            match what {
                WAKE => users.wake(now, connection),
                ARRIVE => users.arrive(now),
                life if life == lives[connection as usize] => {
                    users.receive(now, connection, received[connection as usize]);
                }
                _ => (),
            }
        }
    }

    fn pages(done: &[(Time, Act)]) -> Vec<Completion> {
        done.iter()
            .filter_map(|(_, act)| if let Act::Loaded(page) = act { Some(*page) } else { None })
            .collect()
    }

    const CONSTANT: &str = "main_size = { kind = \"constant\", size = \"9kB\" }, object_size = { kind = \"constant\", size = \"2kB\" }";

    #[test]
    fn a_page_is_its_main_object_and_then_rounds_of_parallel_ones() {
        // 1 + ceil(7 / 3) rounds of 10 ms.
        let scenario = scenario(&format!("objects = 7, parallel = 3, think = \"10s\", {CONSTANT}"));
        let mut users = users(&scenario);
        let (done, _) = play(&mut users, Span::from_millis(10), &mut || false);
        let pages = pages(&done);
        assert!(pages.iter().all(|page| (page.took, page.size.get()) == (Span::from_millis(40), 23_000)));
        // 5000 s at 10.04 s: 498, σ = 22.3.
        assert!((pages.len() as f64 - 498.0).abs() < 4.0 * 22.3, "{}", pages.len());
        let gaps =
            pages.windows(2).map(|pair| pair[1].start.since(pair[0].start + pair[0].took).as_secs_f64());
        let (n, sum) = (pages.len() as f64 - 1.0, gaps.sum::<f64>());
        assert!((sum / n - 10.0).abs() < 4.0 * 10.0 / n.sqrt(), "{}", sum / n);
    }

    #[test]
    fn pages_do_not_depend_on_the_network() {
        let scenario = scenario("think = \"5s\"");
        let sizes = |takes: u64| {
            let (done, _) = play(&mut users(&scenario), Span::from_millis(takes), &mut || false);
            pages(&done).iter().map(|page| page.size.get()).collect::<Vec<_>>()
        };
        let (fast, slow) = (sizes(1), sizes(700));
        assert!(slow.len() > 400 && fast.len() > slow.len());
        assert_eq!(fast[..slow.len()], slow);
        // The model of 3GPP2: 10.7 kB, and 5.64 times 8.2 kB.
        let mean = fast.iter().sum::<u64>() as f64 / fast.len() as f64;
        let variance = fast.iter().map(|size| (*size as f64 - mean).powi(2)).sum::<f64>() / fast.len() as f64;
        assert!((mean - 57_000.0).abs() < 4.0 * (variance / fast.len() as f64).sqrt() + 1_500.0, "{mean}");
    }

    #[test]
    fn a_lost_request_is_repeated_after_one_second_and_then_after_two() {
        let scenario = scenario(&format!("objects = 1, think = \"10s\", {CONSTANT}"));
        let mut users = users(&scenario);
        let mut requests = 0;
        let mut first_two = || {
            requests += 1;
            requests <= 2
        };
        let (done, _) = play(&mut users, Span::from_millis(10), &mut first_two);
        let asked: Vec<Time> =
            done.iter().filter(|(_, act)| *act == Act::Ask(0)).map(|&(at, _)| at).take(3).collect();
        assert_eq!(asked, [0, 1, 3].map(Time::from_secs));
        assert_eq!(pages(&done)[0].took, Span::from_millis(3_020));
        assert!(pages(&done)[1..].iter().all(|page| page.took == Span::from_millis(20)));
    }

    #[test]
    fn a_late_request_is_answered_once_and_only_for_its_object() {
        let scenario = scenario(&format!("objects = 1, {CONSTANT}"));
        let mut users = users(&scenario);
        let [second, two, four] = [1, 2, 4].map(Time::from_secs);
        users.arrive(Time::ZERO);
        users.wake(second, 0);
        assert_eq!(users.answer(second, 0), Some(Bytes::new(9_000)));
        assert_eq!(users.answer(Time::ZERO, 0), None);
        users.receive(two, 0, 8_999);
        assert!(users.connections[0].asked.is_some());
        users.receive(two, 0, 9_000);
        // The other object is requested; requests for the first one are still in flight.
        assert_eq!(users.answer(second, 0), None);
        assert_eq!(users.answer(four, 0), Some(Bytes::new(2_000)));
    }

    #[test]
    fn ten_thousand_users_take_the_memory_of_those_that_are_there() {
        // Two users a second for 5000 s who stay for 20 s: 40 at a time, σ = 6.3.
        let churn = format!("users_per_second = 2, life = \"20s\", think = \"2s\", {CONSTANT}");
        let scenario = scenario(&churn);
        let mut users = users(&scenario);
        let seats = users.seats.len();
        assert!((40..40 + 8 * 7).contains(&seats), "{seats}");
        let (done, most) = play(&mut users, Span::from_millis(10), &mut || false);
        let count = |which: fn(&Act) -> bool| done.iter().filter(|(_, act)| which(act)).count();
        let came = count(|act| matches!(act, Act::Await(_)));
        assert!((came as f64 - 10_000.0).abs() < 4.0 * 100.0, "{came}");
        // All found a seat: each begins with a page, and all of them except those at the end have left.
        let left = count(|act| matches!(act, Act::Close(_))) / 6;
        assert!(came - left <= seats, "{came} {left}");
        assert_eq!((users.seats.len(), users.connections.len()), (seats, seats * 6));
        // Pending events are removed with them too, and actions of complete pages: six objects each, with a
        // request and a timer.
        assert!(most < 40 * seats, "{most}");
        let pages = pages(&done).len();
        assert!((10_000..150_000).contains(&pages), "{pages}");
        assert!(done.len() < 25 * came + 17 * pages, "{} for {pages}", done.len());
        // Users do not load pages after leaving.
        let mut last = vec![Time::ZERO; seats * 6];
        for &(at, act) in &done {
            match act {
                Act::Close(connection) => last[connection as usize] = at,
                Act::Ask(connection) => assert!(at >= last[connection as usize]),
                _ => (),
            }
        }
    }

    #[test]
    fn no_user_comes_after_the_stop_and_a_user_may_be_too_short_for_a_page() {
        let short = scenario(&format!("users_per_second = 5, life = \"1ms\", {CONSTANT}"));
        let (done, _) = play(&mut users(&short), Span::from_millis(500), &mut || false);
        assert_eq!(pages(&done).len(), 0);
        assert!(done.iter().all(|&(at, _)| at < short.stop));
        let rare = scenario(&format!("users_per_second = 1e-9, life = \"1s\", {CONSTANT}"));
        let mut none = users(&rare);
        assert_eq!((none.seats.len(), none.acts.len()), (0, 0));
        none.wake(Time::ZERO, 0);
        none.arrive(Time::ZERO);
        assert_eq!(none.answer(Time::ZERO, 0), None);
    }
}
