//! A league from a program: cells, empty cells, files, the cache, errors.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use apportion::{Cache, Cancel, League, LeagueError, LeagueResults, Progress, Run, Scenario};
use apportion_report::league::{Cell, Situation};

#[cfg(all(feature = "live", target_os = "linux"))]
use crate::example;

fn league() -> League<'static> {
    League::new().disciplines(["fifo", "drr", "fq_codel"]).situations(["floods", "home-uplink"]).seeds(2)
}

fn mean(results: &LeagueResults, discipline: &str, situation: &str, metric: &str) -> f64 {
    results.cell(discipline, situation).unwrap().played().unwrap().metric(metric).unwrap().mean
}

/// Returns every file below a folder, by path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            all.extend(files(&entry.path()).into_iter().map(|(of, bytes)| (format!("{name}/{of}"), bytes)));
        } else {
            all.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    all
}

#[test]
fn two_leagues_have_the_same_bytes_with_any_number_of_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let play = |jobs| league().jobs(jobs).folder(folder.path()).run().unwrap();
    let (one, two) = (play(1), play(3));
    let (one, two) = (files(one.folder().unwrap()), files(two.folder().unwrap()));
    let names: Vec<&str> = one.keys().map(String::as_str).collect();
    assert_eq!(names.len(), 2 * 3 + 4, "{names:?}");
    assert!(names.contains(&"league.html") && names.contains(&"cells/floods/fq_codel.html"));
    assert_eq!(one, two);
    // Every link of the page leads to a file.
    let page = String::from_utf8(one["league.html"].clone()).unwrap();
    let links = page.split("href=\"cells/").skip(1).map(|rest| rest.split('"').next().unwrap());
    let links: Vec<String> = links.map(|link| format!("cells/{link}")).collect();
    assert!(links.len() > 6 && links.iter().all(|link| one.contains_key(link)), "{links:?}");
}

#[test]
fn a_flood_starves_tcp_in_a_fifo_and_not_in_round_robin() {
    let results = league().run().unwrap();
    let worst = |discipline| mean(&results, discipline, "floods", "worst_share");
    assert!(worst("fifo") < 0.1, "{}", worst("fifo"));
    assert!(worst("drr") > 0.95, "{}", worst("drr"));
    // An unresponsive flow at sixteen times its share gets more of it in the FIFO than one at eight times.
    assert!(mean(&results, "fifo", "floods", "best_share") > 2.0);
    assert!(mean(&results, "drr", "floods", "lost") > 0.5, "what is beyond a share is lost");
    // The cost: the call waits in the FIFO behind uploads.
    let call = |discipline| mean(&results, discipline, "home-uplink", "delay_p95_ms/call");
    assert!(call("fifo") > 3.0 * call("fq_codel"));
}

#[test]
fn what_people_see_and_hear_has_columns() {
    let results =
        League::new().disciplines(["fifo", "fq_codel"]).situations(["video-calls"]).seeds(1).run().unwrap();
    let text = results.text();
    for heading in ["film stalled, %", "film Mb/s", "call to ear, ms", "call MOS", "voice MOS", "probe RPM"] {
        assert!(text.contains(heading), "{heading}: {text}");
    }
    assert!(!text.contains("voice Mb/s"), "it is the same for all: {text}");
    let of = |metric: &str| ["fifo", "fq_codel"].map(|name| mean(&results, name, "video-calls", metric));
    // The probe needs little, and gets many times the rate due to it.
    let [_, jain] = of("jain");
    assert!(jain > 0.8, "{jain}");
    let ([slow, fast], [bad, good]) = (of("rpm/probe"), of("mos/voice"));
    assert!(fast > 2.0 * slow && good > bad + 0.1, "{slow} {fast} {bad} {good}");
}

#[test]
fn what_the_page_shows_is_read_back_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let played =
        League::new().disciplines(["fifo", "drr", "tred"]).situations(["floods", "home-uplink"]).seeds(2);
    let played = played.folder(folder.path()).run().unwrap();
    let load = |path: &Path, disciplines: &[&str]| LeagueResults::load(path, disciplines, &[]);
    let read = load(played.folder().unwrap(), &[]).unwrap();
    let stored = played.league().stored();
    assert_eq!(read.league().stored(), stored);
    let of = |results: &LeagueResults| {
        let estimate =
            results.cell("drr", "floods").unwrap().played().unwrap().metric("worst_share").unwrap();
        (estimate.mean, estimate.ci95.unwrap(), estimate.n)
    };
    let ((mean, half, n), (found, found_half, found_n)) = (of(&played), of(&read));
    assert!((found / mean - 1.0).abs() < 1e-4 && (found_half / half - 1.0).abs() < 1e-2 && found_n == n);
    assert_eq!(
        read.cell("tred", "floods").unwrap().reason(),
        played.cell("tred", "floods").unwrap().reason()
    );
    // Its cells have no reports, and its page links to none.
    assert!(played.page().contains("href=\"cells/") && !read.page().contains("href=\"cells/"));
    // A part of the league is loaded and written again.
    let one = load(played.folder().unwrap(), &["drr"]).unwrap().write(folder.path(), true).unwrap();
    assert!(one.cell("fifo", "floods").is_none() && one.folder().unwrap().ends_with("2"));
    assert!(files(one.folder().unwrap()).contains_key("kit/floods.tex"));
    // Missing and damaged leagues are refused.
    let refusal = |path: &Path, disciplines: &[&str]| load(path, disciplines).unwrap_err().to_string();
    assert!(refusal(folder.path(), &[]).contains("league.jsonl"));
    assert!(
        refusal(played.folder().unwrap(), &["red"]).contains("no discipline `red`; it has fifo, drr, tred")
    );
    let damaged = folder.path().join("damaged.jsonl");
    let lines: Vec<&str> = stored.lines().collect();
    for (text, cause) in [
        (lines[..4].join("\n"), "lines are missing at its end"),
        (stored.replacen("\"numbers\"", "\"number\"", 1), "line 3: "),
        (
            stored.replacen("apportion-league/1", "apportion-league/9", 1),
            "its format is `apportion-league/9`",
        ),
    ] {
        std::fs::write(&damaged, text).unwrap();
        assert!(refusal(&damaged, &[]).contains(cause), "{cause}");
    }
}

#[test]
fn the_scenario_of_a_cell_gives_its_numbers() {
    let disciplines = ["fifo", "fq_codel", "pie"];
    let results = League::new().disciplines(disciplines).situations(["mixed-l4s"]).seeds(2).run().unwrap();
    let situation = &results.league().situations[0];
    for (entrant, cell) in results.league().disciplines.iter().zip(&situation.cells) {
        let text = situation.scenario.as_ref().unwrap().with(entrant);
        let scenario = Scenario::from_text(text).unwrap();
        let run = Run::new(&scenario).seeds(2).phase_check(false).simulate().unwrap();
        let texts = ["it", "it", "it"].map(str::to_owned);
        let alone = Situation::of(texts, None, vec![None], run.points());
        let metrics = |cell: &Cell| cell.played().unwrap().metrics().cloned().collect::<Vec<_>>();
        assert_eq!(metrics(&alone.cells[0]), metrics(cell), "{}", entrant.name);
    }
    // The page has each text once, and what the script puts into it.
    let page = results.page();
    assert_eq!(page.matches("<pre data-seeds=\"2\" data-marks=\"1\">").count(), 1);
    let pie = "data-queue=\"{ kind = &quot;pie&quot; }\" data-marking=\"{ kind = &quot;pie&quot;, ecn = true }\">pie</span>";
    assert_eq!(page.matches(pie).count(), 1);
}

#[test]
fn a_kit_has_tables_and_figures_for_a_paper() {
    let results = league().seeds(2).run().unwrap();
    let kit: BTreeMap<String, Vec<u8>> = results.league().kit().into_iter().collect();
    let names: Vec<&str> = kit.keys().map(String::as_str).collect();
    for name in [
        "costs.tex",
        "floods-front.pdf",
        "floods-front.svg",
        "floods-shares.pdf",
        "floods.tex",
        "worst-shares.tex",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(names.len(), 2 * 5 + 2, "{names:?}");
    for (name, content) in &kit {
        let text = String::from_utf8_lossy(content);
        match name.rsplit_once('.').unwrap().1 {
            "pdf" => assert!(content.starts_with(b"%PDF-"), "{name}"),
            "svg" => assert!(text.starts_with("<svg") && text.contains("worst share"), "{name}"),
            _ => {
                // Each row has the same number of cells as the first, and the name of a discipline is
                // escaped.
                let rows: Vec<usize> = text
                    .lines()
                    .filter(|line| line.ends_with("\\\\"))
                    .map(|line| line.matches(" & ").count())
                    .collect();
                assert!(rows.len() == 4 && rows.iter().all(|count| *count == rows[0]), "{name}: {text}");
                assert!(text.contains("fq\\_codel &"), "{name}: {text}");
            }
        }
    }
    let table = String::from_utf8_lossy(&kit["floods.tex"]);
    assert!(
        table.contains("worst share &") && table.contains("$\\pm$") && table.contains("\\toprule"),
        "{table}"
    );
}

#[test]
fn who_lacks_what_a_situation_needs_has_an_empty_cell_with_the_reason() {
    let results = League::new()
        .disciplines(["fifo", "csfq", "drr", "ramp", "tred", "rio", "cake", "htb"])
        .situations(["guarantees", "core", "floods", "tickets"])
        .seeds(1)
        .run()
        .unwrap();
    let reason = |discipline, situation| results.cell(discipline, situation).unwrap().reason();
    let says = |discipline, situation, what: &str| {
        let reason = reason(discipline, situation).unwrap();
        assert!(reason.contains(what), "{discipline} in {situation}: {reason}");
    };
    says("fifo", "guarantees", "knows no guarantees");
    says("drr", "core", "64 bytes per flow");
    says("ramp", "floods", "real-rate");
    says("tred", "floods", "tickets");
    says("rio", "floods", "colours");
    says("csfq", "tickets", "one label");
    says("htb", "floods", "classes");
    for (discipline, situation) in [
        ("csfq", "guarantees"),
        ("rio", "guarantees"),
        ("fifo", "core"),
        ("csfq", "core"),
        ("tred", "tickets"),
        ("cake", "floods"),
    ] {
        assert_eq!(reason(discipline, situation), None, "{discipline} in {situation}");
    }
    // An empty cell is a row without a number.
    let rows = results.rows();
    let empty: Vec<_> =
        rows.iter().filter(|row| row.situation == "core" && row.discipline == "drr").collect();
    assert!(
        matches!(empty[..], [row] if row.mean.is_none() && row.metric.is_empty() && row.reason.is_some())
    );
    let page = results.page();
    assert!(page.contains("64 bytes per flow"));
    // Each links to the reasons of its situation, which can also be reached on a touch screen.
    let empty = page.split("<td class=\"empty\">").skip(1);
    let targets: Vec<&str> =
        empty.map(|cell| cell.split("href=\"#").nth(1).unwrap().split('"').next().unwrap()).collect();
    assert!(targets.len() > 8, "{targets:?}");
    for target in targets {
        assert!(page.contains(&format!("<details id=\"{target}\">")), "{target}");
    }
}

#[test]
fn a_page_has_what_its_filter_selects() {
    let disciplines = ["fifo", "codel", "stfq+pfd", "fq_codel"];
    let results = League::new().disciplines(disciplines).situations(["floods", "core"]).seeds(1);
    let page = results.phase_check(false).run().unwrap().page();
    for (family, name) in
        [("scheduler", "fifo"), ("buffer policy", "codel"), ("scheduler", "stfq+pfd"), ("system", "fq_codel")]
    {
        let row = format!("<tr data-family=\"{family}\"><th scope=\"row\">{name}</th>");
        // In the tables of five metrics, and that of a situation in which it runs.
        assert!(page.matches(&row).count() >= 6, "{row}");
        let costs = format!("<tr data-family=\"{family}\"><th scope=\"row\"><span data-queue=");
        assert!(page.contains(&costs), "{costs}");
        assert!(page.contains(&format!("<option value=\"{family}\">")), "{family}");
    }
    for situation in ["s-floods", "s-core"] {
        assert!(page.contains(&format!("<option value=\"{situation}\">")), "{situation}");
        assert!(page.contains(&format!("<h3 id=\"{situation}\">")), "{situation}");
    }
    let metrics = page.matches("<details class=\"matrix\"").count();
    let (_, metric) = page.split_once("<select name=\"metric\">").unwrap();
    assert_eq!(metric.split("</select>").next().unwrap().matches("<option").count(), 1 + metrics);
}

#[test]
fn a_reason_names_the_key_that_it_is_about() {
    let htb = "{ kind = \"htb\", class = { a = { rate = \"1Mbit\" } } }";
    let results = League::new().disciplines(["fifo", htb]).situations(["floods"]).seeds(1).run().unwrap();
    let reason = results.cell(htb, "floods").unwrap().reason().unwrap();
    assert!(reason.starts_with("flow.") && reason.contains(".customer: missing, and the queue"), "{reason}");
}

#[test]
fn an_interrupted_league_leaves_no_folder_and_goes_on_from_the_cache() {
    let [folder, cache] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let cache = Cache::at(cache.path());
    let cancel = Cancel::new();
    let stop = |progress: Progress| {
        if progress.done == 4 {
            cancel.cancel();
        }
    };
    let run = league().jobs(1).cache(&cache, 1 << 30).folder(folder.path());
    let interrupted = run.cancel(&cancel).progress(stop).run();
    assert!(matches!(interrupted, Err(LeagueError::Cancelled)));
    assert_eq!(files(folder.path()), BTreeMap::new());
    let seen = Mutex::new(Vec::new());
    let note = |progress: Progress| seen.lock().unwrap().push(progress);
    let run = || league().cache(&cache, 1 << 30).folder(folder.path());
    let resumed = run().progress(note).run().unwrap();
    assert!(resumed.reused() >= 4 && resumed.reused() < 24, "{}", resumed.reused());
    // 3 disciplines in 2 situations with 2 seeds and their perturbed copies.
    let seen = seen.into_inner().unwrap();
    assert!(seen.is_sorted_by_key(|of| of.done) && seen.iter().all(|of| of.total == 24), "{seen:?}");
    assert!(seen.windows(2).all(|two| two[0].part() <= two[1].part()), "{seen:?}");
    assert_eq!(seen.last().unwrap().done, 24);
    let again = run().run().unwrap();
    assert_eq!(again.reused(), 24);
    let fresh = league().folder(folder.path()).run().unwrap();
    assert_eq!(files(again.folder().unwrap()), files(fresh.folder().unwrap()));
}

#[test]
fn a_situation_that_has_changed_is_simulated_again_and_the_others_are_not() {
    let [folder, cache] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let cache = Cache::at(cache.path());
    let path = folder.path().join("mine.toml");
    let text = apportion::situations().find(|(name, _)| *name == "floods").unwrap().1;
    let play = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let names = [path.to_str().unwrap(), "home-uplink"];
        league().situations(names).phase_check(false).cache(&cache, 1 << 30).run().unwrap()
    };
    assert_eq!(play(text).reused(), 0);
    let changed = play(&text.replace("rate = \"10Mbit\", delay", "rate = \"9Mbit\", delay"));
    assert_eq!(changed.reused(), 6);
    // The situation has the name of its file.
    assert!(mean(&changed, "fifo", "mine", "worst_share") < 0.1);
}

#[test]
fn unknown_names_are_refused_with_a_guess() {
    let refusal = |disciplines: &[&str], situations: &[&str]| {
        let league = League::new().disciplines(disciplines.to_vec()).situations(situations.to_vec());
        league.run().unwrap_err().to_string()
    };
    assert!(refusal(&["fifoo"], &["floods"]).contains("did you mean `fifo`?"));
    assert!(refusal(&["stfq+pdf"], &["floods"]).contains("did you mean `pfd`?"));
    assert!(refusal(&["fifo+drr"], &["floods"]).contains("`drr` is not known here"));
    assert!(refusal(&["fifo"], &["flods"]).contains("did you mean `floods`?"));
    assert!(refusal(&["{ kind = \"pie\", target = \"x\" }"], &["floods"]).contains("target"));
}

#[test]
fn the_whole_league_takes_less_than_half_an_hour() {
    let all = League::new().seeds(1);
    let cells = all.simulations().unwrap();
    assert!(cells > 600, "{cells}");
    let estimate = all.seeds(3).phase_check(false).estimate().unwrap();
    assert!(estimate.seconds() < 1_800.0, "{estimate}");
}

#[cfg(all(feature = "live", target_os = "linux"))]
#[test]
fn a_discipline_of_your_own_plays_by_its_name() {
    let catalog = example::catalog().unwrap();
    let results = League::new()
        .catalog(&catalog)
        .disciplines(["fifo", "quadratic"])
        .situations(["mixed-tcp"])
        .seeds(1)
        .run()
        .unwrap();
    let used = |discipline| mean(&results, discipline, "mixed-tcp", "utilisation/bottleneck");
    assert!(used("quadratic") > 0.5);
    let queued = |discipline| mean(&results, discipline, "mixed-tcp", "queue_delay_p95_ms/bottleneck");
    assert!(queued("quadratic") < 0.9 * queued("fifo"), "{} {}", queued("quadratic"), queued("fifo"));
    // A registered discipline takes part unless others are named.
    let all = |league: League<'_>| league.situations(["mixed-tcp"]).seeds(1).simulations().unwrap();
    assert_eq!(all(League::new().catalog(&catalog)), all(League::new()) + 1);
}
