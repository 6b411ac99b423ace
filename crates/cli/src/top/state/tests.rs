//! Keys and answers.

use super::*;
use crate::top::answer::read;

fn seen(links: usize, flows: usize) -> Seen {
    let link = |at| format!("{{\"name\": \"l{at}\"}}");
    let flow = |at: usize| format!("{{\"flow\": \"f{at}\", \"measured_bytes_per_second\": {at}}}");
    let list = |count: usize, of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<Vec<_>>().join(", ");
    let json = format!(
        r#"{{"title": "x", "state": "running", "replications": 1, "course": {{"link_states": [{}], "link": {{"name": "l0", "flows": [{}]}}}}}}"#,
        list(links, &link),
        list(flows, &flow)
    );
    read(json.as_bytes()).unwrap().into()
}

fn state(links: usize, flows: usize) -> State {
    let mut state = State::new(String::new(), seen(links, flows), Duration::ZERO);
    state.scroll = state.scroll.fitted(flows, 10);
    state
}

fn press(state: &mut State, keys: &[KeyCode]) -> Wish {
    keys.iter().map(|code| state.key(KeyEvent::from(*code))).last().unwrap()
}

#[test]
fn keys_that_quit_quit() {
    for code in [KeyCode::F(10), KeyCode::Char('q')] {
        assert_eq!(press(&mut state(1, 1), &[code]), Wish::Quit);
    }
    // The beginning of a sequence whose rest is late.
    let mut split = state(1, 1);
    assert_eq!(press(&mut split, &[KeyCode::Esc, KeyCode::Char('['), KeyCode::Char('B')]), Wish::Draw);
    assert_eq!(split.mode, Mode::Table);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    for mode in [Mode::Table, Mode::Filter, Mode::Help] {
        let mut state = State { mode, ..state(1, 1) };
        assert_eq!(state.key(interrupt), Wish::Quit);
    }
    let release = KeyEvent { kind: KeyEventKind::Release, ..KeyEvent::from(KeyCode::Char('q')) };
    assert_eq!(state(1, 1).key(release), Wish::Draw);
}

#[test]
fn rows_are_selected_and_stay_on_the_screen() {
    let mut state = state(1, 35);
    for (code, selected, first) in [
        (KeyCode::Up, 0, 0),
        (KeyCode::Down, 1, 0),
        (KeyCode::PageDown, 11, 2),
        (KeyCode::Up, 10, 2),
        (KeyCode::End, 34, 25),
        (KeyCode::Down, 34, 25),
        (KeyCode::PageUp, 24, 24),
        (KeyCode::Home, 0, 0),
    ] {
        press(&mut state, &[code]);
        state.scroll = state.scroll.fitted(35, 10);
        assert_eq!((state.scroll.selected, state.scroll.first), (selected, first), "{code:?}");
    }
    // Rows that go take the selection with them.
    press(&mut state, &[KeyCode::End]);
    for (rows, selected, first) in [(12, 11, 2), (3, 2, 0), (0, 0, 0)] {
        let scroll = state.scroll.fitted(rows, 10);
        assert_eq!((scroll.selected, scroll.first), (selected, first));
    }
}

#[test]
fn columns_are_sorted_by_in_turn_and_reversed() {
    let mut state = state(1, 3);
    let names =
        |state: &State| (0..3).map(|row| state.sheet().name(row).unwrap().to_owned()).collect::<String>();
    assert_eq!((state.order().title, names(&state)), ("MEAN", "f2f1f0".to_owned()));
    press(&mut state, &[KeyCode::Char('r')]);
    assert_eq!(names(&state), "f0f1f2");
    // There are no other numbers.
    press(&mut state, &[KeyCode::Char('s')]);
    assert_eq!((state.order().title, names(&state)), ("FLOW", "f0f1f2".to_owned()));
    press(&mut state, &[KeyCode::F(6)]);
    assert_eq!((state.order().title, names(&state)), ("MEAN", "f2f1f0".to_owned()));
}

#[test]
fn a_filter_is_written_kept_and_dropped() {
    let mut state = state(1, 12);
    press(&mut state, &[KeyCode::Char('/'), KeyCode::Char('F'), KeyCode::Char('1'), KeyCode::Char('x')]);
    assert_eq!((state.sheet().len(), state.mode), (0, Mode::Filter));
    press(&mut state, &[KeyCode::Backspace, KeyCode::Enter]);
    // `f1`, `f10` and `f11`.
    assert_eq!((state.sheet().len(), state.mode), (3, Mode::Table));
    press(&mut state, &[KeyCode::Char('/'), KeyCode::Esc]);
    assert_eq!((state.sheet().len(), state.mode), (12, Mode::Table));
    press(&mut state, &[KeyCode::Char('/')]);
    press(&mut state, &[KeyCode::Char('q'); 100]);
    assert_eq!(state.filter.len(), MAX_FILTER);
}

#[test]
fn views_and_links_are_chosen() {
    let mut state = state(3, 1);
    assert_eq!(press(&mut state, &[KeyCode::Left]), Wish::Draw);
    assert_eq!((press(&mut state, &[KeyCode::Right]), state.link), (Wish::Ask, 1));
    assert_eq!((press(&mut state, &[KeyCode::Right, KeyCode::Right]), state.link), (Wish::Draw, 2));
    press(&mut state, &[KeyCode::Tab]);
    assert_eq!(state.view, View::Links);
    state.scroll = state.scroll.fitted(3, 10);
    assert_eq!(press(&mut state, &[KeyCode::Home, KeyCode::Enter]), Wish::Ask);
    assert_eq!((state.link, state.view), (0, View::Flows));
    press(&mut state, &[KeyCode::BackTab, KeyCode::BackTab]);
    assert_eq!(state.view, View::Flows);
    // Another run has fewer links.
    state.link = 2;
    state.hear(0, Ok(seen(1, 1)), Duration::ZERO);
    assert_eq!(state.link, 0);
}

#[test]
fn a_pause_shows_a_chosen_link_once() {
    let mut state = state(3, 1);
    press(&mut state, &[KeyCode::Char('p')]);
    assert!(!state.is_open());
    assert_eq!(press(&mut state, &[KeyCode::Right, KeyCode::Right]), Wish::Ask);
    // Answers to earlier requests are about other links.
    for (link, flows, shown) in [(0, 2, 1), (1, 3, 1), (2, 4, 4), (2, 5, 4)] {
        state.hear(link, Ok(seen(3, flows)), Duration::ZERO);
        assert_eq!((state.seen.flows.len(), state.is_open()), (shown, shown == 1), "{link}");
    }
    assert!(state.is_paused);
    // A page that does not answer is asked again.
    press(&mut state, &[KeyCode::Left]);
    state.hear(1, Err("nothing listens there".to_owned()), Duration::ZERO);
    assert!(state.is_open());
}

#[test]
fn a_page_that_goes_and_comes_back_is_told_apart() {
    let mut state = state(1, 2);
    let at = Duration::from_secs;
    assert_eq!(state.silence(at(9)), None);
    state.hear(0, Ok(seen(1, 3)), at(10));
    state.hear(0, Err("nothing listens there".to_owned()), at(11));
    assert_eq!(state.silence(at(15)), Some((5, "nothing listens there")));
    assert_eq!(state.seen.flows.len(), 3, "the last values stay");
    state.hear(0, Ok(seen(1, 4)), at(16));
    assert_eq!((state.silence(at(17)), state.seen.flows.len()), (None, 4));
    press(&mut state, &[KeyCode::Char(' ')]);
    state.hear(0, Ok(seen(1, 5)), at(18));
    assert_eq!((state.is_paused, state.seen.flows.len()), (true, 4));
}
