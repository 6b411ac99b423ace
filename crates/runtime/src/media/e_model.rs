//! The E-model of ITU-T G.107, as Cole and Rosenbluth simplify it for voice over IP ("Voice over IP performance monitoring", ACM
//! SIGCOMM Computer Communication Review 31(2), 2001): the rating R from delay and loss, and the mean opinion score from R.
//!
//! - R = 93.2 - Id - Ie, with other parameters at their defaults. 93.2 is the value of G.107 since 2000; the
//!   authors use 94.2.
//! - Id = 0.024 d + 0.11 (d - 177.3) if d > 177.3 ms: the delay d from mouth to ear, without echo (their equation 6).
//! - Ie = γ1 + γ2 ln(1 + γ3 e), with the share e of packets that are lost or late, at random: 0, 30, 15 for G.711 and 11, 40, 10 for
//!   G.729A with 20 ms a packet (their section 3.3).
//! - MOS = 1 for R < 0, 4.5 for R > 100, else 1 + 0.035 R + 7·10⁻⁶ R (R - 60) (100 - R) (G.107 annex B).
//!
//! This formula falls below 1 for R between 0 and 6.5; the score is 1 there.

use apportion_core::units::Span;
use apportion_scenario::media::Codec;

/// R without any impairment.
const BEST: f64 = 93.2;
/// Delay from which people notice that they talk at the same time, ms.
const NOTICED: f64 = 177.3;

/// R of a call with this delay from mouth to ear and this share of packets lost.
#[must_use]
pub fn rating(codec: Codec, delay: Span, lost: f64) -> f64 {
    let ms = delay.as_secs_f64() * 1e3;
    let id = 0.024 * ms + 0.11 * (ms - NOTICED).max(0.0);
    let [g1, g2, g3] = match codec {
        Codec::G711 => [0.0, 30.0, 15.0],
        Codec::G729a => [11.0, 40.0, 10.0],
    };
    BEST - id - (g1 + g2 * libm::log(1.0 + g3 * lost.clamp(0.0, 1.0)))
}

/// The mean opinion score of a rating.
#[must_use]
pub fn opinion(r: f64) -> f64 {
    if r > 100.0 {
        return 4.5;
    }
    let r = r.max(0.0);
    (1.0 + 0.035 * r + 7e-6 * r * (r - 60.0) * (100.0 - r)).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratings_are_those_of_the_formulas() {
        let near = |x: f64, y: f64| assert!((x - y).abs() < 0.005, "{x} is not {y}");
        near(rating(Codec::G711, Span::ZERO, 0.0), 93.2);
        // 0.024 · 100.
        near(rating(Codec::G711, Span::from_millis(100), 0.0), 90.8);
        // 0.024 · 277.3 + 0.11 · 100.
        near(rating(Codec::G711, Span::from_micros(277_300), 0.0), 75.545);
        // 30 ln 1.15 and 11 + 40 ln 1.1.
        near(rating(Codec::G711, Span::ZERO, 0.01), 93.2 - 4.193);
        near(rating(Codec::G729a, Span::ZERO, 0.01), 93.2 - 11.0 - 3.812);
    }

    #[test]
    fn scores_are_those_of_annex_b() {
        // R = 93.2: 1 + 3.262 + 7e-6 · 93.2 · 33.2 · 6.8 = 4.409; the table of G.107 has 4.41, and 3.10 for R
        // = 60.
        assert!((opinion(93.2) - 4.409).abs() < 1e-3);
        assert!((opinion(60.0) - 3.1).abs() < 1e-9);
        assert_eq!([opinion(-20.0), opinion(3.0), opinion(101.0)], [1.0, 1.0, 4.5]);
    }
}
