SELECT max(epoch) FROM epochs
