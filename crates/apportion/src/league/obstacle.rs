//! The reasons why a discipline cannot run in a situation.

use apportion_core::FlowSetting;
use apportion_core::packet::{FlowClass, FlowId, LabelKind};
use apportion_core::param::GoesBy;
use apportion_core::system::LinkContext;
use apportion_core::units::{Rate, Span};
use apportion_scenario::Problem;
use apportion_scenario::model::Flow;

use super::discipline::Discipline;
use super::error::LeagueError;
use super::situation::Situation;
use crate::scenario::ScenarioError;

/// Returns the reason why a discipline cannot run; none if it can.
pub(super) fn of(situation: &Situation, discipline: &Discipline) -> Result<Option<String>, LeagueError> {
    if situation.is_stateless && !discipline.is_stateless() {
        let costs: Vec<&str> = discipline.entries.iter().map(|entry| entry.cost).collect();
        return Ok(Some(format!("it keeps state for flows: {}", costs.join("; "))));
    }
    let missing = missing(situation, discipline);
    if missing.is_some() {
        return Ok(missing);
    }
    match situation.with_discipline(discipline) {
        Ok(_) => Ok(None),
        Err(ScenarioError::Problems(problems)) => Ok(problems.first().map(reason_of)),
        Err(error) => Err(LeagueError::Scenario(Box::new(error))),
    }
}

/// Formats a problem with the key that it is about: "missing" alone would be ambiguous.
fn reason_of(problem: &Problem) -> String {
    match problem.path.as_str() {
        "" => problem.message.clone(),
        path => format!("{path}: {}", problem.message),
    }
}

/// Returns the information that the discipline uses and the flows lack, or the reverse.
fn missing(situation: &Situation, discipline: &Discipline) -> Option<String> {
    let flows = || situation.base.points().iter().flat_map(|point| &point.scenario.flows);
    let none_has = |has: fn(&Flow) -> bool| !flows().any(has);
    let params = &discipline.params;
    if discipline.goes_by(GoesBy::RealRate) && none_has(|flow| flow.class == FlowClass::RealRate) {
        return Some("it reserves for real-rate flows, and there are none".to_owned());
    }
    // A table without classes has a single leaf without a name.
    if params.classes().is_some_and(|classes| classes.leaves == [""]) {
        return Some("it schedules classes, and its table has none".to_owned());
    }
    let goes_by_tickets = params.label_required() == Some(LabelKind::Tickets);
    if goes_by_tickets && none_has(|flow| flow.tickets.is_some() || flow.ack_tickets.is_some()) {
        return Some("it goes by tickets, and no flow has any".to_owned());
    }
    let mut agreements = situation.base.points().iter().flat_map(|point| &point.scenario.agreements);
    if discipline.goes_by(GoesBy::Agreements) && !agreements.any(|one| one.is_written) {
        return Some("it goes by agreements, and there are none".to_owned());
    }
    let goes_by_colours = discipline.goes_by(GoesBy::Colours);
    let has_mark = |flow: &Flow| flow.mark.is_some() && flow.tickets.is_none();
    if goes_by_colours && none_has(has_mark) {
        return Some("it goes by colours, and no packet has one".to_owned());
    }
    let has_guarantees = !none_has(|flow| flow.guarantee > Rate::ZERO);
    let rate = Rate::from_mbit(10);
    let mut built = params.build_simple(&LinkContext::new(rate, 0, "league"));
    let knows = built.set_flow(FlowId(0), FlowSetting::Guarantee(Rate::from_mbit(1), Span::from_millis(20)));
    (has_guarantees && !knows && !goes_by_colours).then(|| "it knows no guarantees".to_owned())
}
