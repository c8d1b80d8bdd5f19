KERNEL empty() {}
