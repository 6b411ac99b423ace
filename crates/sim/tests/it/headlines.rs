//! Headline figures of the papers of SP-PIFO and AIFO, as in `examples/headlines`.

#[path = "../../examples/headlines/fct.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
mod fct;
#[path = "../../examples/headlines/ranked.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
mod ranked;
#[path = "../../examples/headlines/run.rs"]
mod run;

/// Returns the number of packets that leave before a smaller rank with `queues` queues of SP-PIFO, relative
/// to those that arrive after a larger one at a FIFO; ranks are uniform, in 50 ms.
fn inversions_over_fifo(queues: u64) -> f64 {
    let sp_pifo = format!(r#"{{ kind = "ranked", place = "sp_pifo", queues = {queues} }}"#);
    let [fifo, ours] = [r#""ranked""#, &sp_pifo]
        .map(|queue| ranked::inversions(queue, ranked::SACK, 750.0, 0.05, 1).unwrap());
    ours.overtaking / fifo.behind_larger
}

#[test]
fn eight_queues_of_sp_pifo_have_three_tenths_of_the_inversions_of_a_fifo_and_one_has_all() {
    // Section 4.2: 264,568 of 864,088.
    let (eight, one) = (inversions_over_fifo(8), inversions_over_fifo(1));
    assert!((0.25..0.36).contains(&eight) && one > 0.9, "{eight} {one}");
}

/// Inversions for each departure, and the part of arrivals that are dropped though a PIFO would keep them, at
/// a load of 1.1 with uniform ranks.
fn of_flood(place: &str) -> [f64; 2] {
    ranked::flood(
        &format!(r#"{{ kind = "ranked", headroom = 0.0, window = 1000, sample = 1, {place} }}"#),
        0.02,
        1,
    )
    .unwrap()
}

#[test]
fn packs_sorts_better_than_sp_pifo_and_admits_as_well_as_aifo() {
    // The abstract: up to 7 and 15 times fewer inversions than SP-PIFO and AIFO, over all ranks.
    let places = ["fifo", "aifo", "sp_pifo", "packs"].map(|name| of_flood(&format!(r#"place = "{name}""#)));
    let [fifo, aifo, sp_pifo, packs] = places;
    assert!(
        fifo[0] > 8.0 * aifo[0] && aifo[0] > 3.0 * sp_pifo[0] && sp_pifo[0] > 3.0 * packs[0],
        "{places:?}"
    );
    assert!(packs[1] < 0.001 && aifo[1] < 0.001 && sp_pifo[1] > 0.01, "{places:?}");
    // With one queue it is AIFO.
    let [one, _] = of_flood(r#"place = "packs", queues = 1"#);
    assert!((one / aifo[0] - 1.0).abs() < 0.15, "{one} {aifo:?}");
    let [published, _] = of_flood(r#"place = "packs", rule = "published""#);
    assert!(published < 0.7 * sp_pifo[0] && published > 1.5 * packs[0], "{published} {places:?}");
}

#[test]
fn rifo_as_published_drops_low_ranks_as_a_fifo_does() {
    let rifo = |rule: &str| of_flood(&format!(r#"place = "rifo", rule = "{rule}""#))[1];
    let (sound, published) = (rifo("text"), rifo("published"));
    assert!(published > 0.05 && sound < 0.3 * published, "{sound} {published}");
}

#[test]
fn the_small_file_is_through_as_if_it_were_alone_behind_aifo_and_not_if_all_ranks_are_admitted() {
    // Fig. 12: 91.1 ms; alone it takes 10 MB / 1380 B times 12 us.
    let small = |more: &str| {
        let queue =
            format!(r#"{{ kind = "ranked", ranks = "remaining", place = "aifo", limit = "100p"{more} }}"#);
        ranked::order(&queue, "12us", 1).unwrap()[0]
    };
    let (aifo, open) = (small(""), small(", headroom = 0.99"));
    assert!((0.0866..0.0957).contains(&aifo) && (open.is_nan() || open > 0.12), "{aifo} {open}");
}

#[test]
fn short_files_end_sooner_the_better_a_queue_sorts() {
    let short = |place: &str| {
        let queue = format!(r#"{{ kind = "ranked", ranks = "remaining", limit = "40p", {place} }}"#);
        fct::completions(&queue, 0.8, 0.1, 1).unwrap()[0]
    };
    let fifo = short(r#"place = "fifo""#);
    let aifo = short(r#"place = "aifo""#);
    let packs = short(r#"place = "packs", queues = 4, sample = 1"#);
    let pifo = short(r#"place = "pifo""#);
    assert!(pifo <= packs && packs < aifo && aifo < fifo, "{pifo} {packs} {aifo} {fifo}");
}
