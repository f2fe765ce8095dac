/// The thread pool of the CPU backend.
#include "samesum/backend/cpu/schedule/threads.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "samesum/backend/cpu/schedule/tasks.hpp"
#include "samesum/base/environment.hpp"

namespace samesum::cpu {
namespace {

/// Helper threads that wait for calls.
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
    work_on(call);
    std::unique_lock lock{mutex_};
    calls_.remove(&call);  // no tasks are left for helpers that have not started
    done_.wait(lock, [&call] { return call.running == 0; });
    if (call.error) std::rethrow_exception(call.error);
  }

 private:
  struct Call {
    const std::function<void()>& work;
    int wanted, running = 0;
    std::exception_ptr error = nullptr;  ///< the first that work() threw on any thread
  };

  /// Runs work() on this thread. Its exception waits for the caller: other threads still use the call.
  void work_on(Call& call) {
    try {
      call.work();
    } catch (...) {
      const std::scoped_lock lock{mutex_};
      if (!call.error) call.error = std::current_exception();
    }
  }

  /// Creates the missing helpers, with all signals blocked: signals are left to the program's own threads.
  void grow(int helpers) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    try {
      for (; threads_ < helpers; ++threads_) std::thread{[this] { serve(); }}.detach();
    } catch (const std::exception&) {
      // The system cannot create more threads, or memory is exhausted; the existing ones do the work.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
      work_on(call);
      lock.lock();
      if (--call.running == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wanted_, done_;
  std::list<Call*> calls_;  ///< calls that still need helpers
  int threads_ = 0;
};

/// The pool, created on first use and never destroyed, since its threads wait on it until the process ends. A
/// forked process has none of these threads, and possibly a mutex that stays locked, so it creates its own
/// pool.
Pool& pool() {
  static std::atomic<Pool*> current{nullptr};
  static const int forgets = pthread_atfork(nullptr, nullptr, [] { current = nullptr; });
  static_cast<void>(forgets);
  Pool* found = current;
  if (found) return *found;
  auto fresh = std::make_unique<Pool>();
  return current.compare_exchange_strong(found, fresh.get()) ? *fresh.release() : *found;
}

}  // namespace

int thread_count(int asked, std::size_t n, std::size_t tasks) {
  static const std::size_t processors = std::max(1u, std::thread::hardware_concurrency());  // a system call
  const std::size_t automatic = std::clamp<std::size_t>(n >> 17, 1, processors);
  const std::size_t wanted =
      asked > 0 ? std::min(static_cast<std::size_t>(asked), most_threads_per_processor * processors)
                : automatic;
  return static_cast<int>(std::min(wanted, std::max<std::size_t>(tasks, 1)));
}

void on_threads(int threads, const std::function<void()>& work) {
  const FloatingPointEnvironment environment;
  threads > 1 ? pool().run(threads - 1, work) : work();
}

void run_tasks(int threads, std::size_t tasks, void (*call)(void* task, std::size_t k), void* task) {
  if (threads == 1) {
    for (std::size_t k = 0; k < tasks; ++k) call(task, k);
    return;
  }
  std::atomic<std::size_t> next{0};
  on_threads(threads, [&] {
    for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) call(task, k);
  });
}

}  // namespace samesum::cpu
