//! Reads TFLite and Circle models into one intermediate representation.
