//! The builder methods that a run, a league and a reproduction share, each with the documentation of its
//! type.

/// Defines methods that set the fields of the same names: `builders! { Run: /// … seeds, /// … jobs }`, or those
/// of a field: `builders! { Pairs (league): /// … seeds }`.
macro_rules! builders {
    ($type:ident: $($options:tt)+) => {
        crate::builders::builders! { $type (): $($options)+ }
    };
    ($type:ident $of:tt: $($(#[$doc:meta])* $option:ident),+ $(,)?) => {
        impl<'a> $type<'a> {
            $(crate::builders::builders! { @$option $of $(#[$doc])* })+
        }
    };
    (@seeds ($($of:ident)?) $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn seeds(mut self, count: u64) -> Self {
            self.$($of.)?seeds = count;
            self
        }
    };
    (@phase_check ($($of:ident)?) $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn phase_check(mut self, phase_check: bool) -> Self {
            self.$($of.)?phase_check = Some(phase_check);
            self
        }

        /// Whether replications have perturbed copies.
        pub(crate) fn checks_phases(&self) -> bool {
            self.phase_check.unwrap_or(self.seeds > 1)
        }
    };
    (@jobs ($($of:ident)?) $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn jobs(mut self, threads: usize) -> Self {
            self.$($of.)?jobs = threads;
            self
        }
    };
    (@cancel ($($of:ident)?) $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn cancel(mut self, token: &Cancel) -> Self {
            self.$($of.)?cancel = token.clone();
            self
        }
    };
    (@progress ($($of:ident)?) $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn progress(mut self, report: impl Fn(Progress) + Send + Sync + 'a) -> Self {
            self.$($of.)?progress = Some(Box::new(report));
            self
        }
    };
    (@folder ($($of:ident)?) $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
            self.$($of.)?folder = Some(folder.into());
            self
        }
    };
    (@kit ($($of:ident)?) $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn kit(mut self, kit: bool) -> Self {
            self.$($of.)?kit = kit;
            self
        }
    };
    (@cache ($($of:ident)?) $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn cache(mut self, cache: &Cache, most: u64) -> Self {
            self.$($of.)?cache = Some((cache.clone(), most));
            self
        }
    };
    (@force ($($of:ident)?) $(#[$doc:meta])*) => {
        $(#[$doc])*
        pub fn force(mut self, force: bool) -> Self {
            self.$($of.)?force = force;
            self
        }
    };
}

pub(crate) use builders;
