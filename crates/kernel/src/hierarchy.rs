//! Settings and state of an HCSFQ core in the kernel: maps of 64-bit words, as declared in `bpf/hcsfq.c`.
//!
//! The root is a CSFQ core with the words of [`CoreSettings`]. The constants for measuring the rates of
//! customers follow, and for each customer its weight. The kernel keeps 224 B and two weights of 16 B for
//! each customer and 64 B for each prefix of addresses; packets add no state.

use apportion_core::aqm::csfq::CsfqParams;
use apportion_core::aqm::hcsfq::HcsfqParams;
use apportion_core::mark::rate_label::{Marking, RateLabelParams};
use apportion_core::packet::MAX_CUSTOMERS;
use apportion_core::units::{Rate, Ratio, Span, Weight};

use crate::settings::{
    CoreSettings, LinkState, SETTINGS, STATE, Unsuitable, inverse, is_window, per_time, q16,
};

/// Number of words of one of the two sets of constants in the map `settings`.
pub const HIERARCHY: usize = SETTINGS + 8;
/// Number of words of each customer in the map `customers`.
pub const CUSTOMER: usize = STATE + 9;

/// The range of weights of customers that fits into the fixed-point format.
const WEIGHTS: (f64, f64) = (1.0 / 32_768.0, 32_768.0);

/// The constants of an HCSFQ core.
#[derive(Clone, Debug, PartialEq)]
pub struct HierarchySettings {
    /// The constants of the link.
    pub core: CoreSettings,
    /// The estimator of the rates of customers, with the parameters of an edge for flows.
    edge: RateLabelParams,
    /// The weights W, by number of the customer; all others first.
    customers: Vec<Weight>,
}

impl HierarchySettings {
    /// Creates the constants for `params` for a link of `rate`, with one customer.
    ///
    /// # Errors
    /// The key that the program does not support, or whose value does not fit.
    pub fn new(params: &HcsfqParams, rate: Rate) -> Result<Self, Unsuitable> {
        let of_link = CsfqParams {
            by_flow: false,
            limit: params.limit,
            threshold: params.threshold,
            role: params.role,
            egress: params.egress,
            reserve: params.reserve,
            avoidance: Ratio::ZERO,
            l4s: false,
            edge: params.edge.clone(),
            fair_share: params.fair_share.clone(),
        };
        let core = CoreSettings::new(&of_link, rate)?;
        let edge = params.edge.clone();
        if !is_window(edge.k) {
            return Err(Unsuitable { key: "k", hint: "must lie between 1 ms and 1 h".to_owned() });
        }
        if edge.credit != Span::ZERO && !is_window(edge.credit) {
            return Err(Unsuitable {
                key: "credit",
                hint: "must be \"0s\", or lie between 1 ms and 1 h".to_owned(),
            });
        }
        Ok(Self { core, edge, customers: vec![Weight::ONE] })
    }

    /// Sets the customers, all others first; without any, there is one customer of weight 1.
    ///
    /// # Errors
    /// A weight that does not fit, or more than 65,536 customers.
    pub fn with_customers(self, weights: &[Weight]) -> Result<Self, Unsuitable> {
        let (least, most) = WEIGHTS;
        if let Some(weight) = weights.iter().find(|weight| !(least..=most).contains(&weight.get())) {
            let hint =
                format!("of a customer must lie between 1/32768 and 32768, and {} does not", weight.get());
            return Err(Unsuitable { key: "weight", hint });
        }
        if weights.len() > MAX_CUSTOMERS + 1 {
            return Err(Unsuitable { key: "customer", hint: format!("is there {} times", weights.len()) });
        }
        let customers = if weights.is_empty() { vec![Weight::ONE] } else { weights.to_vec() };
        Ok(Self { customers, ..self })
    }

    /// Returns the weights of customers, by number.
    #[must_use]
    pub fn customers(&self) -> &[Weight] {
        &self.customers
    }

    /// Returns the words that the program reads, in the order of `struct hierarchy`; `is_destination` selects
    /// the address that is the inside address.
    #[must_use]
    pub fn words(&self, is_destination: bool) -> [u64; HIERARCHY] {
        let (k, credit) = (self.edge.k.as_nanos(), self.edge.credit.as_nanos());
        let smallest = self.customers.iter().fold(1.0, |least: f64, weight| least.min(weight.get()));
        let own = [
            k,
            inverse(64, k),
            per_time(k),
            credit,
            per_time(credit.max(1_000_000)),
            q16(1.0 / smallest),
            u64::from(is_destination),
            u64::from(self.edge.marking == Marking::Debt),
        ];
        let mut words = [0; HIERARCHY];
        words[..SETTINGS].copy_from_slice(&self.core.words());
        words[SETTINGS..].copy_from_slice(&own);
        words
    }

    /// Returns the words of each customer, in the order of `struct weight`: W and 1/W in Q32.
    pub fn weight_words(&self) -> impl Iterator<Item = [u64; 2]> {
        let q32 = |value: f64| (value * 4_294_967_296.0).round() as u64;
        self.customers.iter().map(move |weight| [q32(weight.get()), q32(1.0 / weight.get())])
    }
}

/// The state of a customer at the time of reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CustomerState {
    /// The share of its flows in its part.
    pub share: LinkState,
    /// C_n: its part of the link in bit/s; none before its first packet.
    pub part: Option<f64>,
    /// A_n: its arrival rate in bit/s.
    pub arrival_rate: f64,
    /// Labelled packets that arrived.
    pub packets: u64,
    /// Bytes of these packets, as charged.
    pub bytes: u64,
    /// Number of these packets that were dropped.
    pub dropped: u64,
}

impl CustomerState {
    /// Decodes the words of the map `customers`.
    #[must_use]
    pub fn of(words: &[u64; CUSTOMER]) -> Self {
        let mut share = [0; STATE];
        share.copy_from_slice(&words[..STATE]);
        let [c, arrival, _, _, _, _, packets, bits, dropped] = std::array::from_fn(|i| words[STATE + i]);
        let rate = |q16: u64| q16 as f64 / 65_536.0;
        Self {
            share: LinkState::of(&share),
            part: (c > 0).then(|| rate(c)),
            arrival_rate: rate(arrival),
            packets,
            bytes: bits / 8,
            dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_core::system::any::PolicyParams;
    use apportion_core::system::{BufferParams, Catalog, DisciplineKind, DisciplineParams};

    fn settings(set: &[(&str, &str)]) -> Result<HierarchySettings, Unsuitable> {
        let mut selection = Catalog::default().select("hcsfq", None, None).unwrap();
        for (key, value) in [("role", "core"), ("target_delay", "0s")].iter().chain(set) {
            selection.set(key, value).unwrap();
        }
        match DisciplineParams::from_args(&selection).unwrap().kind {
            DisciplineKind::Buffered(BufferParams { drop: PolicyParams::Hcsfq(params), .. }) => {
                HierarchySettings::new(&params, Rate::from_mbit(8))
            }
            other => panic!("{other:?}"),
        }
    }

    fn weights(of: &[f64]) -> Vec<Weight> {
        of.iter().map(|weight| Weight::new(*weight).unwrap()).collect()
    }

    #[test]
    fn constants_are_in_fixed_point() {
        let settings = settings(&[("k", "200ms"), ("credit", "4s")])
            .unwrap()
            .with_customers(&weights(&[1.0, 0.25, 4.0]));
        let settings = settings.unwrap();
        let words = settings.words(true);
        assert_eq!(words[..SETTINGS], settings.core.words());
        // K; 2^64 / K; 2^51 5; the mean; 2^51 / 4; a weight of 1/4; the destination; debts are the default.
        assert_eq!(
            words[SETTINGS..],
            [200_000_000, 92_233_720_368, 5 << 51, 4_000_000_000, 1 << 49, 4 << 16, 1, 1]
        );
        let one = 1 << 32;
        let of_customers: Vec<_> = settings.weight_words().collect();
        assert_eq!(of_customers, [[one, one], [one / 4, 4 * one], [4 * one, one / 4]]);
    }

    #[test]
    fn what_does_not_fit_is_refused_by_its_key() {
        let key = |set: &[_]| settings(set).unwrap_err().key;
        assert_eq!([key(&[("k", "10us")]), key(&[("credit", "2us")])], ["k", "credit"]);
        assert_eq!([key(&[("limit", "64p")]), key(&[("bits", "8")])], ["limit", "bits"]);
        assert!(settings(&[("credit", "0s")]).is_ok());
        for weight in [1e-5, 40_000.0] {
            let refusal = settings(&[]).unwrap().with_customers(&weights(&[1.0, weight])).unwrap_err();
            assert_eq!(refusal.key, "weight");
        }
        let many = vec![Weight::ONE; MAX_CUSTOMERS + 2];
        assert_eq!(settings(&[]).unwrap().with_customers(&many).unwrap_err().key, "customer");
        assert_eq!(settings(&[]).unwrap().with_customers(&[]).unwrap().customers(), [Weight::ONE]);
    }

    #[test]
    fn a_customer_is_read_as_the_program_writes_it() {
        let words = std::array::from_fn(|i| i as u64 * 65_536);
        let state = CustomerState::of(&words);
        assert_eq!((state.part, state.arrival_rate), (Some(19.0), 20.0));
        assert_eq!((state.packets, state.bytes, state.dropped), (25 << 16, 26 << 13, 27 << 16));
        assert_eq!(CustomerState::of(&[0; CUSTOMER]).part, None);
    }
}
