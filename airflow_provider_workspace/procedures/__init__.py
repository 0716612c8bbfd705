"""Work of several requests: generators that yield what to send and are sent the results. No I/O of their own."""
