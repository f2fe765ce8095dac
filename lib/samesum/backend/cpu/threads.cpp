#include "samesum/backend/cpu/threads.hpp"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>

#include "samesum/environment.hpp"

namespace samesum::cpu {
namespace {

/// Threads that wait for calls to help with.
class Pool {
 public:
  void run(int helpers, const std::function<void()>& work) {
    Call call{work, helpers};
    {
      const std::scoped_lock lock{mutex_};
      grow(helpers);
      calls_.push_back(&call);
    }
    helpers == 1 ? wanted_.notify_one() : wanted_.notify_all();
    work();
    std::unique_lock lock{mutex_};
    calls_.remove(&call);  // whoever has not come by now need not
    done_.wait(lock, [&call] { return call.running == 0; });
  }

 private:
  struct Call {
    const std::function<void()>& work;
    int wanted, running = 0;
  };

  void grow(int helpers) {
    try {
      for (; threads_ < helpers; ++threads_) std::thread{[this] { serve(); }}.detach();
    } catch (const std::system_error&) {
      // No more threads to be had: those that there are do the work.
    }
  }

  void serve() {
    const FloatingPointEnvironment environment;
    std::unique_lock lock{mutex_};
    while (true) {
      wanted_.wait(lock, [this] { return !calls_.empty(); });
      Call& call = *calls_.front();
      ++call.running;
      if (--call.wanted == 0) calls_.pop_front();
      lock.unlock();
      call.work();
      lock.lock();
      if (--call.running == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wanted_, done_;
  std::list<Call*> calls_;  ///< that still want help
  int threads_ = 0;
};

/// Never destroyed: its threads wait on it until the process ends, and a process made by fork, which has none
/// of them, does its work alone and must not wait for them when it ends.
Pool& pool() {
  static Pool& pool = *new Pool;
  return pool;
}

}  // namespace

int thread_count(int asked, std::size_t n, std::size_t tasks) {
  static const std::size_t processors = std::max(1u, std::thread::hardware_concurrency());  // asks the system
  const std::size_t automatic = std::clamp<std::size_t>(n >> 17, 1, processors);
  const std::size_t wanted = asked > 0 ? static_cast<std::size_t>(asked) : automatic;
  return static_cast<int>(std::min(wanted, std::max<std::size_t>(tasks, 1)));
}

void on_threads(int threads, const std::function<void()>& work) {
  const FloatingPointEnvironment environment;
  threads > 1 ? pool().run(threads - 1, work) : work();
}

}  // namespace samesum::cpu
